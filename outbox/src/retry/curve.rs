//! [`Curve`]: the back-offs of a [`RetryBuilder`](super::RetryBuilder), as plain values.

use std::{fmt, time::Duration};

use humantime::format_duration as words;

use super::{PolicyDuration, PolicyError, backoff};

/// How delays grow from one failure to the next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Curve {
    Fixed(Duration),
    /// `by` is added after each further failure.
    Linear {
        initial: Duration,
        by: Duration,
        max: Duration,
    },
    /// `by` multiplies after each further failure.
    Exponential {
        initial: Duration,
        by: f64,
        max: Duration,
    },
    /// The user's own back-off, which `RetryBuilder::custom` holds.
    Custom,
}

impl Curve {
    /// The delay after the `failure_count`-th failure. Zero for `Custom`: the builder calls the user's
    /// back-off itself.
    pub(super) fn delay(self, failure_count: u32) -> Duration {
        match self {
            Self::Fixed(delay) => delay,
            Self::Linear { initial, by, max } => backoff::linear(initial, by, max, failure_count),
            Self::Exponential { initial, by, max } => {
                backoff::exponential(initial, by, max, failure_count)
            }
            Self::Custom => Duration::ZERO,
        }
    }

    pub(super) fn check(self) -> Result<(), PolicyError> {
        let positive = |what, duration: Duration| {
            if duration.is_zero() {
                return Err(PolicyError::ZeroDuration(what));
            }
            Ok(())
        };
        let capped = |initial, max| {
            positive(PolicyDuration::InitialDelay, initial)?;
            positive(PolicyDuration::MaxDelay, max)?;
            if max < initial {
                return Err(PolicyError::MaxBelowInitial { initial, max });
            }
            Ok(())
        };
        match self {
            Self::Fixed(delay) => positive(PolicyDuration::FixedDelay, delay),
            Self::Linear { initial, by, max } => {
                positive(PolicyDuration::Increment, by)?;
                capped(initial, max)
            }
            Self::Exponential { initial, by, max } => {
                if !by.is_finite() || by <= 1.0 {
                    return Err(PolicyError::Multiplier(by));
                }
                capped(initial, max)
            }
            Self::Custom => Ok(()),
        }
    }

    /// The longest delay, before jitter.
    pub(super) const fn max(self) -> Duration {
        match self {
            Self::Linear { max, .. } | Self::Exponential { max, .. } => max,
            Self::Fixed(_) | Self::Custom => Duration::MAX,
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fixed(delay) => write!(f, "fixed {}", words(delay)),
            Self::Linear { initial, by, max } => {
                let (initial, by, max) = (words(initial), words(by), words(max));
                write!(f, "linear {initial} +{by} up to {max}")
            }
            Self::Exponential { initial, by, max } => {
                let (initial, max) = (words(initial), words(max));
                write!(f, "exponential {initial} ×{by} up to {max}")
            }
            Self::Custom => f.write_str("custom back-off"),
        }
    }
}
