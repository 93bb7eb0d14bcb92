//! The names of error types in a policy that comes from a configuration.

use std::{borrow::Cow, error::Error};

use super::{RetryBuilder, UnknownErrorName, filter::ErrorType};
use crate::config::error_names::ErrorNames;

/// A name whose error type is not known yet.
#[derive(Debug, Clone)]
pub(super) struct Unresolved {
    pub(super) name: UnknownErrorName,
    rule: Rule,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    /// `include-exceptions`
    Only,
    /// `exclude-exceptions`
    Never,
}

impl RetryBuilder {
    /// Gives an error type the name under which the configuration of
    /// [`Retry::from_config`](super::Retry::from_config) includes or excludes it.
    ///
    /// ```
    /// use outbox::{Config, HandlerError, Retry, RetryPolicy};
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("declined")]
    /// struct Declined;
    ///
    /// let config: Config =
    ///     serde_json::from_str(r#"{ "retry": { "exclude-exceptions": ["billing.declined"] } }"#)?;
    /// let retry = Retry::from_config(&config.retry)
    ///     .error_name::<Declined>("billing.declined")
    ///     .build()?;
    /// assert!(!retry.should_retry(&HandlerError::from(Declined)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A name that the configuration does not have changes nothing.
    pub fn error_name<E: Error + 'static>(self, name: impl Into<Cow<'static, str>>) -> Self {
        let ty = ErrorType::named::<E>(name);
        self.resolved(|name| (name == ty.name).then(|| ty.clone()))
    }

    /// Replaces names by the error types that a program registered under them.
    pub(crate) fn resolved_by(self, names: &ErrorNames) -> Self {
        self.resolved(|name| names.find(name).ok().cloned())
    }

    fn resolved(mut self, find: impl Fn(&str) -> Option<ErrorType>) -> Self {
        for unresolved in std::mem::take(&mut self.unresolved) {
            match (find(&unresolved.name.name), unresolved.rule) {
                (Some(ty), Rule::Only) => self.filter.only.push(ty),
                (Some(ty), Rule::Never) => self.filter.never.push(ty),
                (None, _) => self.unresolved.push(unresolved),
            }
        }
        self
    }

    /// A name of `include-exceptions`.
    pub(crate) fn only_named(self, ty: Result<ErrorType, UnknownErrorName>) -> Self {
        self.named(ty, Rule::Only)
    }

    /// A name of `exclude-exceptions`.
    pub(crate) fn never_named(self, ty: Result<ErrorType, UnknownErrorName>) -> Self {
        self.named(ty, Rule::Never)
    }

    fn named(mut self, ty: Result<ErrorType, UnknownErrorName>, rule: Rule) -> Self {
        match (ty, rule) {
            (Ok(ty), Rule::Only) => self.filter.only.push(ty),
            (Ok(ty), Rule::Never) => self.filter.never.push(ty),
            (Err(name), rule) => self.unresolved.push(Unresolved { name, rule }),
        }
        self
    }
}
