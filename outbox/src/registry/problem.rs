//! What can be wrong at start-up, all of it in one error.

use std::fmt;

use super::Location;
use crate::{
    config::DuplicateErrorName,
    retry::{NoHandler, PolicyError},
};

/// Everything that keeps the registry from being built.
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
    /// Nothing is registered at all.
    #[error(
        "no handler is registered: mark an `async fn` with `#[outbox_handler]`; if your handlers are in another crate, name it once (`use my_handlers as _;`), or it is not linked; a process that only publishes says `.allow_empty()`"
    )]
    Empty,
    /// Two handlers answer to the same id or alias.
    #[error(
        "the id `{id}` stands for two handlers, at {first} and at {second}: give one of them another with `#[outbox_handler(id = \"..\")]`"
    )]
    DuplicateId {
        /// The id or alias.
        id: &'static str,
        /// One of them.
        first: Location,
        /// The other.
        second: Location,
    },
    /// An id longer than the column that stores it.
    #[error(
        "{location}: the id `{id}` is longer than 255 bytes: give a shorter one with `#[outbox_handler(id = \"..\")]`"
    )]
    LongId {
        /// The id or alias.
        id: &'static str,
        /// Where the handler stands.
        location: Location,
    },
    /// A handler needs a value that the application did not give.
    #[error("{location}: handler `{handler}` needs a `State<{ty}>`: give one with `.state(..)`")]
    MissingState {
        /// The id of the handler.
        handler: &'static str,
        /// The type of the value.
        ty: &'static str,
        /// Where the handler stands.
        location: Location,
    },
    /// A handler takes an argument that only a fallback can have.
    #[error(
        "{location}: handler `{handler}` takes a `&HandlerError`, which only a fallback can: remove the argument"
    )]
    FailureArgument {
        /// The id of the handler.
        handler: &'static str,
        /// Where the handler stands.
        location: Location,
    },
    /// A handler takes the transaction of another database than the outbox's.
    #[error(
        "{location}: handler `{handler}` takes a `Tx` of `{taken}`, but this outbox is on `{outbox}`: take one of that database, or use a pool of the other as `State`"
    )]
    OtherDatabase {
        /// The id of the handler.
        handler: &'static str,
        /// The database of its argument.
        taken: &'static str,
        /// The outbox's database.
        outbox: &'static str,
        /// Where the handler stands.
        location: Location,
    },
    /// `#[retryable(policy = "..")]` names a policy that nobody gave.
    #[error(
        "{location}: handler `{handler}` names the policy `{name}`, which does not exist{}: give it with `.named_policy(\"{name}\", ..)` or under `retry.policies.{name}` in the configuration",
        .nearest.as_ref().map(|nearest| format!(" (the nearest is `{nearest}`)")).unwrap_or_default()
    )]
    UnknownPolicy {
        /// The name as written.
        name: &'static str,
        /// The existing name most like it.
        nearest: Option<String>,
        /// The id of the handler.
        handler: &'static str,
        /// Where the handler stands.
        location: Location,
    },
    /// The policy of a handler contradicts itself.
    #[error("{location}: the retry policy of handler `{handler}` cannot be built: {source}")]
    HandlerPolicy {
        /// The id of the handler.
        handler: &'static str,
        /// Where the handler stands.
        location: Location,
        /// What is wrong with it.
        source: PolicyError,
    },
    /// A policy given to the builder or in the configuration contradicts itself.
    #[error("{place} cannot be built: {source}")]
    Policy {
        /// Where the policy was given.
        place: String,
        /// What is wrong with it.
        source: PolicyError,
    },
    /// An error type was given a name that another one has already.
    #[error(transparent)]
    DuplicateErrorName(#[from] DuplicateErrorName),
    /// An event that has to be handled is not.
    #[error(transparent)]
    NoHandler(#[from] NoHandler),
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
        match &*self.problems {
            [only] => write!(f, "the outbox cannot start: {only}"),
            several => {
                write!(f, "the outbox cannot start, for {} reasons:", several.len())?;
                several
                    .iter()
                    .try_for_each(|problem| write!(f, "\n  - {problem}"))
            }
        }
    }
}

impl std::error::Error for RegistryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.problems {
            [only] => only.source(),
            _ => None,
        }
    }
}
