//! What can be wrong with a policy that is put together in code or configuration.

use std::time::Duration;

use crate::config::DuplicateErrorName;

/// A retry policy that cannot be built.
///
/// ```
/// use std::time::Duration;
/// use outbox::{Retry, retry::PolicyError};
///
/// let error = Retry::builder().fixed(Duration::ZERO).build().unwrap_err();
/// assert_eq!(error.to_string(), "the fixed delay must be longer than zero");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A duration that has to be positive is zero.
    #[error("{0} must be longer than zero")]
    ZeroDuration(&'static str),
    /// A multiplier that would not make delays grow.
    #[error(
        "the multiplier must be a number greater than 1.0, not {0}; for a constant delay use a fixed back-off"
    )]
    Multiplier(f64),
    /// A cap that is below the first delay.
    #[error("the longest delay, {max:?}, is below the initial delay, {initial:?}")]
    MaxBelowInitial {
        /// The delay after the first failure.
        initial: Duration,
        /// The cap.
        max: Duration,
    },
    /// A proportional jitter outside `0.0..=1.0`.
    #[error("a proportional jitter is a share from 0.0 to 1.0, not {0}")]
    JitterShare(f64),
    /// A name in `include-exceptions` or `exclude-exceptions` that stands for no error type.
    #[error(transparent)]
    UnknownErrorName(#[from] UnknownErrorName),
    /// Two error types were given the same name.
    #[error(transparent)]
    DuplicateErrorName(#[from] DuplicateErrorName),
}

/// An error-type name that nobody registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no error type is registered under the name `{name}`{}; register your own with `#[outbox::error_name(\"{name}\")]` or `.error_name::<E>(\"{name}\")`",
    .nearest.as_ref().map(|nearest| format!(", the nearest is `{nearest}`")).unwrap_or_default()
)]
pub struct UnknownErrorName {
    /// The name as written.
    pub name: String,
    /// The registered name most like it.
    pub nearest: Option<String>,
}
