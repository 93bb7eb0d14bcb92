//! [`Jitter`]: spreads retries at random, so that records that failed together are not retried
//! together.

use std::{fmt, time::Duration};

use super::{PolicyError, backoff::scale};

/// How a delay is spread at random around (or below) the back-off's `base`.
///
/// Jitter is applied after the back-off's `max`. A delay may exceed `max` by the jitter and no more.
///
/// | | drawn uniformly from |
/// |---|---|
/// | `None` | `base` |
/// | `Around(d)` | `[max(base - d, 0), base + d]` |
/// | `Above(d)` | `[base, base + d]` |
/// | `Full` | `[0, base]` |
/// | `Equal` | `[base / 2, base]` |
/// | `Proportional(p)` | `[base * (1 - p), base * (1 + p)]` |
/// | `Decorrelated` | `[initial, min(3 * previous, max)]` |
///
/// A [`RetryPolicy`](crate::retry::RetryPolicy) knows the number of failures, but not the delay that
/// was drawn last. `Decorrelated` therefore uses the base of the failure before as `previous`.
/// [`backoff::decorrelated`](crate::retry::backoff::decorrelated) takes the drawn delay instead.
///
/// ```
/// use std::time::Duration;
/// use outbox::{Retry, RetryPolicy, retry::Jitter};
///
/// let minute = Duration::from_secs(60);
/// let retry = Retry::builder().fixed(minute).jitter(Jitter::Equal).build()?;
/// assert!((minute / 2..=minute).contains(&retry.next_delay(1)));
/// # Ok::<(), outbox::retry::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Jitter {
    /// Exactly `base`.
    #[default]
    None,
    /// Up to this duration earlier or later.
    Around(Duration),
    /// Up to this duration later, never earlier.
    Above(Duration),
    /// From zero to `base`.
    Full,
    /// From half of `base` to `base`.
    Equal,
    /// Up to this share of `base` earlier or later, `0.0..=1.0`.
    Proportional(f64),
    /// From the first delay to three times the previous one.
    Decorrelated,
}

impl From<Duration> for Jitter {
    fn from(spread: Duration) -> Self {
        Self::Around(spread)
    }
}

impl Jitter {
    pub(super) fn check(self) -> Result<(), PolicyError> {
        match self {
            Self::Proportional(share) if !(0.0..=1.0).contains(&share) => {
                Err(PolicyError::JitterShare(share))
            }
            _ => Ok(()),
        }
    }

    /// The interval from which the delay after a failure is drawn. Both ends are included. `delay` is
    /// the back-off, and `max` its longest delay.
    pub(super) fn interval(
        self,
        failure_count: u32,
        delay: impl Fn(u32) -> Duration,
        max: Duration,
    ) -> (Duration, Duration) {
        let base = delay(failure_count.max(1));
        match self {
            Self::None => (base, base),
            Self::Around(spread) => (base.saturating_sub(spread), base.saturating_add(spread)),
            Self::Above(spread) => (base, base.saturating_add(spread)),
            Self::Full => (Duration::ZERO, base),
            Self::Equal => (base / 2, base),
            Self::Proportional(share) => (scale(base, 1.0 - share), scale(base, 1.0 + share)),
            Self::Decorrelated => {
                let (initial, previous) = (delay(1), delay(failure_count.saturating_sub(1).max(1)));
                (initial, previous.saturating_mul(3).min(max).max(initial))
            }
        }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use humantime::format_duration as words;
        match self {
            Self::None => f.write_str("no jitter"),
            Self::Around(spread) => write!(f, "jitter ±{}", words(*spread)),
            Self::Above(spread) => write!(f, "jitter 0 to +{}", words(*spread)),
            Self::Full => f.write_str("full jitter"),
            Self::Equal => f.write_str("equal jitter"),
            Self::Proportional(share) => write!(f, "jitter ±{}%", share * 100.0),
            Self::Decorrelated => f.write_str("decorrelated jitter"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn interval(jitter: Jitter) -> (Duration, Duration) {
        jitter.interval(
            3,
            |failure_count| secs([1, 4, 8][failure_count as usize - 1]),
            secs(10),
        )
    }

    #[test]
    fn each_mode_draws_from_its_interval() {
        assert_eq!(interval(Jitter::None), (secs(8), secs(8)));
        assert_eq!(interval(Jitter::Around(secs(3))), (secs(5), secs(11)));
        assert_eq!(interval(Jitter::Around(secs(9))), (secs(0), secs(17)));
        assert_eq!(interval(Jitter::Above(secs(3))), (secs(8), secs(11)));
        assert_eq!(interval(Jitter::Full), (secs(0), secs(8)));
        assert_eq!(interval(Jitter::Equal), (secs(4), secs(8)));
        assert_eq!(interval(Jitter::Proportional(0.5)), (secs(4), secs(12)));
        assert_eq!(interval(Jitter::Decorrelated), (secs(1), secs(10)));
    }

    #[test]
    fn a_share_outside_zero_to_one_is_refused() {
        for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Jitter::Proportional(share).check().is_err(), "{share}");
        }
        assert!(Jitter::Proportional(0.0).check().is_ok());
        assert!(Jitter::Proportional(1.0).check().is_ok());
    }
}
