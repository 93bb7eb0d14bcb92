//! [`Curve`]: the back-offs of a [`RetryBuilder`](super::RetryBuilder), as plain values.

use std::{fmt, time::Duration};

use humantime::format_duration as words;

use super::{PolicyDuration, PolicyError, backoff};

/// How delays grow from one failure to the next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Curve {
    Fixed {
        delay: Duration,
    },
    Linear {
        initial: Duration,
        increment: Duration,
        max: Duration,
    },
    Exponential {
        initial: Duration,
        multiplier: f64,
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
            Self::Fixed { delay } => delay,
            Self::Linear {
                initial,
                increment,
                max,
            } => backoff::linear(initial, increment, max, failure_count),
            Self::Exponential {
                initial,
                multiplier,
                max,
            } => backoff::exponential(initial, multiplier, max, failure_count),
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
            Self::Fixed { delay } => positive(PolicyDuration::FixedDelay, delay),
            Self::Linear {
                initial,
                increment,
                max,
            } => {
                positive(PolicyDuration::Increment, increment)?;
                capped(initial, max)
            }
            Self::Exponential {
                initial,
                multiplier,
                max,
            } => {
                if !multiplier.is_finite() || multiplier <= 1.0 {
                    return Err(PolicyError::Multiplier(multiplier));
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
            Self::Fixed { .. } | Self::Custom => Duration::MAX,
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fixed { delay } => write!(f, "fixed {}", words(delay)),
            Self::Linear {
                initial,
                increment,
                max,
            } => write!(
                f,
                "linear {} +{} up to {}",
                words(initial),
                words(increment),
                words(max)
            ),
            Self::Exponential {
                initial,
                multiplier,
                max,
            } => write!(
                f,
                "exponential {} ×{multiplier} up to {}",
                words(initial),
                words(max)
            ),
            Self::Custom => f.write_str("custom back-off"),
        }
    }
}
