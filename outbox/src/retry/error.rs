//! [`PolicyError`]: why a retry policy cannot be built.

use std::{fmt, time::Duration};

use crate::config::{DuplicateErrorName, Place};

/// A retry policy cannot be built from these values.
///
/// ```
/// use std::time::Duration;
/// use outbox::{Retry, retry::{PolicyDuration, PolicyError}};
///
/// let error = Retry::builder().fixed(Duration::ZERO).build().unwrap_err();
/// assert_eq!(error, PolicyError::ZeroDuration(PolicyDuration::FixedDelay));
/// assert_eq!(error.to_string(), "the fixed delay must be longer than zero");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A duration is zero.
    #[error("{0} must be longer than zero")]
    ZeroDuration(PolicyDuration),
    /// With this multiplier, the delays would not grow.
    #[error(
        "the multiplier must be a number greater than 1.0, not {0}; for a constant delay use a fixed back-off"
    )]
    Multiplier(f64),
    /// The longest delay is shorter than the first one.
    #[error("the longest delay, {max:?}, is below the initial delay, {initial:?}")]
    MaxBelowInitial {
        /// The delay after the first failure.
        initial: Duration,
        /// The longest delay.
        max: Duration,
    },
    /// The share of a proportional jitter is outside `0.0..=1.0`.
    #[error("a proportional jitter is a share from 0.0 to 1.0, not {0}")]
    JitterShare(f64),
    /// `include-exceptions` or `exclude-exceptions` has a name that no error type has.
    #[error(transparent)]
    UnknownErrorName(#[from] UnknownErrorName),
    /// Two error types have the same name.
    #[error(transparent)]
    DuplicateErrorName(#[from] DuplicateErrorName),
}

/// A duration of a retry policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyDuration {
    /// The delay of a fixed back-off.
    FixedDelay,
    /// The delay after the first failure.
    InitialDelay,
    /// What a linear back-off adds after each failure.
    Increment,
    /// The longest delay of a back-off.
    MaxDelay,
    /// The time after the first failure in which retries may start.
    MaxElapsed,
}

impl fmt::Display for PolicyDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FixedDelay => "the fixed delay",
            Self::InitialDelay => "the initial delay",
            Self::Increment => "the increment",
            Self::MaxDelay => "the longest delay",
            Self::MaxElapsed => "the longest elapsed time",
        })
    }
}

/// No error type has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}no error type is registered under the name `{name}`{}; register your own with `#[outbox::error_name(\"{name}\")]` or `.error_name::<E>(\"{name}\")`",
    .place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default(),
    .nearest.as_ref().map(|nearest| format!(", the nearest is `{nearest}`")).unwrap_or_default()
)]
#[non_exhaustive]
pub struct UnknownErrorName {
    /// The name in the configuration.
    pub name: String,
    /// The registered name that is most similar.
    pub nearest: Option<String>,
    /// Where the configuration file or the environment has the name. `None` for a configuration from code.
    pub place: Option<Place>,
}
