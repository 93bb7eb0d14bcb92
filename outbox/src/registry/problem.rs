//! [`RegistryError`]: everything that is wrong at start-up, in one error.

use std::{error::Error, fmt, iter};

use super::{Location, NoHandler};
use crate::{
    config::{DuplicateErrorName, Place},
    retry::PolicyError,
};

/// Everything that prevents the registry from being built.
///
/// The text lists each problem with its causes, so there is no `source()`.
///
/// ```
/// use outbox::Registry;
///
/// let error = Registry::builder().build().unwrap_err();
/// assert!(error.to_string().contains("no handler is registered"));
/// assert_eq!(error.problems().len(), 1);
/// ```
#[derive(Debug)]
pub struct RegistryError {
    problems: Vec<Problem>,
}

/// One thing that is wrong at start-up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The registry has no handler.
    #[error(
        "no handler is registered: mark an `async fn` with `#[outbox_handler]`; if your handlers are in another crate, name it once (`use my_handlers as _;`), or it is not linked; a process that only publishes says `.allow_empty()`"
    )]
    Empty,
    /// Two handlers have the same id or alias.
    #[error(
        "two handlers have the id `{id}`, at {first} and at {second}: give one of them another id with `#[outbox_handler(id = \"..\")]`"
    )]
    DuplicateId {
        /// The id or alias.
        id: &'static str,
        /// The source location of one handler.
        first: Location,
        /// The source location of the other.
        second: Location,
    },
    /// An id or alias is longer than the column that stores it.
    #[error(
        "{location}: the id `{id}` is longer than 255 bytes: give a shorter one with `#[outbox_handler(id = \"..\")]`"
    )]
    LongId {
        /// The id or alias.
        id: &'static str,
        /// The source location of the handler.
        location: Location,
    },
    /// Two calls of a builder set the same value.
    #[error("`{call}` is called twice, at {first} and at {second}: remove one of the calls")]
    SetTwice {
        /// The call.
        call: String,
        /// The source location of one call.
        first: Location,
        /// The source location of the other.
        second: Location,
    },
    /// A handler needs a value that the application did not give.
    #[error("{location}: handler `{handler}` needs a `State<{ty}>`: give one with `.state(..)`")]
    MissingState {
        /// The id of the handler.
        handler: &'static str,
        /// The type of the value.
        ty: &'static str,
        /// The source location of the handler.
        location: Location,
    },
    /// A handler takes an argument that only a fallback may take.
    #[error(
        "{location}: handler `{handler}` takes a `&HandlerError`, which only a fallback can: remove the argument"
    )]
    FailureArgument {
        /// The id of the handler.
        handler: &'static str,
        /// The source location of the handler.
        location: Location,
    },
    /// A handler takes a transaction of another database than the outbox's.
    #[error(
        "{location}: handler `{handler}` takes a `Tx` of `{taken}`, but this outbox is on `{outbox}`: take one of that database, or use a pool of the other as `State`"
    )]
    OtherDatabase {
        /// The id of the handler.
        handler: &'static str,
        /// The database type of the argument.
        taken: &'static str,
        /// The database type of the outbox.
        outbox: &'static str,
        /// The source location of the handler.
        location: Location,
    },
    /// `#[retryable(policy = "..")]` names a policy that does not exist.
    #[error(
        "{location}: handler `{handler}` names the policy `{name}`, which does not exist{}: give it with `.named_policy(\"{name}\", ..)` or under `retry.policies.{name}` in the configuration",
        .nearest.as_ref().map(|nearest| {
            let at = .nearest_at.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
            format!(" (the nearest is `{nearest}`{at})")
        }).unwrap_or_default()
    )]
    UnknownPolicy {
        /// The name in the attribute.
        name: &'static str,
        /// The existing name that is most similar.
        nearest: Option<String>,
        /// Where the configuration file has that policy.
        nearest_at: Option<Place>,
        /// The id of the handler.
        handler: &'static str,
        /// The source location of the handler.
        location: Location,
    },
    /// The `#[retryable]` of a handler has values that are invalid together.
    #[error("{location}: the retry policy of handler `{handler}` cannot be built")]
    HandlerPolicy {
        /// The id of the handler.
        handler: &'static str,
        /// The source location of the handler.
        location: Location,
        /// The reason.
        source: PolicyError,
    },
    /// A policy of the builder or of the configuration has values that are invalid together.
    #[error("{place} cannot be built")]
    Policy {
        /// Where the program or the configuration sets the policy.
        place: PolicyPlace,
        /// The reason.
        source: PolicyError,
    },
    /// Two error types have the same name.
    #[error(transparent)]
    DuplicateErrorName(#[from] DuplicateErrorName),
    /// An event that [`Registry::require`](crate::Registry::require) names has no handler.
    #[error(transparent)]
    NoHandler(#[from] NoHandler),
}

/// Where a policy that several handlers may share is set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyPlace {
    /// `.retry_policy(..)` on the builder.
    Global,
    /// `.named_policy(..)` on the builder, or `retry.policies` in the configuration.
    Named(String),
    /// The `retry` section of the configuration.
    Configuration,
    /// The library's own default.
    Default,
}

impl fmt::Display for PolicyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("the policy given with `.retry_policy(..)`"),
            Self::Named(name) => write!(f, "the named policy `{name}`"),
            Self::Configuration => f.write_str("the `retry` section of the configuration"),
            Self::Default => f.write_str("the default policy"),
        }
    }
}

impl RegistryError {
    pub(super) fn check(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            return Ok(());
        }
        Err(Self { problems })
    }

    /// Each thing that is wrong.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &*self.problems {
            f.write_str("the outbox cannot start: ")?;
            return write_with_causes(f, only);
        }
        let count = self.problems.len();
        write!(f, "the outbox cannot start, for {count} reasons:")?;
        self.problems.iter().try_for_each(|problem| {
            f.write_str("\n  - ")?;
            write_with_causes(f, problem)
        })
    }
}

fn write_with_causes(f: &mut fmt::Formatter<'_>, problem: &Problem) -> fmt::Result {
    write!(f, "{problem}")?;
    iter::successors(problem.source(), |&cause| cause.source())
        .try_for_each(|cause| write!(f, ": {cause}"))
}

impl Error for RegistryError {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Registry, Retry};

    #[test]
    fn a_cause_is_printed_once() {
        let impossible = Retry::builder().fixed(Duration::ZERO);
        let built = Registry::builder().allow_empty().retry_policy(impossible);
        let error = anyhow::Error::new(built.build().unwrap_err());
        assert_eq!(
            format!("{error:#}"),
            "the outbox cannot start: the policy given with `.retry_policy(..)` cannot be built: \
             the fixed delay must be longer than zero"
        );
    }
}
