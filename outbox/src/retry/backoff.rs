//! The delay before a retry, as functions without state and without a clock.
//!
//! They can be used outside handlers too. `failure_count` is 1 for the delay after the first
//! failure. No function panics or overflows: a delay above `max` becomes `max`.
//!
//! ```
//! use std::time::Duration;
//! use outbox::retry::backoff;
//!
//! let (first, max) = (Duration::from_secs(1), Duration::from_secs(60));
//! assert_eq!(backoff::exponential(first, 2.0, max, 4), Duration::from_secs(8));
//! assert_eq!(backoff::exponential(first, 2.0, max, u32::MAX), max);
//! ```

use std::time::Duration;

use super::random::{Random, between};

/// A back-off of your own, for [`RetryBuilder::backoff`](crate::retry::RetryBuilder::backoff).
///
/// Every closure `Fn(u32) -> Duration` implements it:
///
/// ```
/// use std::time::Duration;
/// use outbox::{Retry, RetryPolicy};
///
/// let steps = |failure_count| match failure_count {
///     ..=2 => Duration::from_secs(1),
///     ..=5 => Duration::from_secs(30),
///     _ => Duration::from_secs(300),
/// };
/// let retry = Retry::builder().backoff(steps).build()?;
/// assert_eq!(retry.next_delay(3), Duration::from_secs(30));
/// # Ok::<(), outbox::retry::PolicyError>(())
/// ```
pub trait Backoff: Send + Sync {
    /// The delay after the `failure_count`-th failure. The first failure is 1.
    fn delay(&self, failure_count: u32) -> Duration;
}

impl<F: Fn(u32) -> Duration + Send + Sync> Backoff for F {
    fn delay(&self, failure_count: u32) -> Duration {
        self(failure_count)
    }
}

/// `min(initial + increment * (failure_count - 1), max)`.
#[must_use]
pub fn linear(
    initial: Duration,
    increment: Duration,
    max: Duration,
    failure_count: u32,
) -> Duration {
    let steps = failure_count.saturating_sub(1);
    increment
        .checked_mul(steps)
        .and_then(|grown| grown.checked_add(initial))
        .map_or(max, |delay| delay.min(max))
}

/// `min(initial * multiplier ^ (failure_count - 1), max)`.
#[must_use]
pub fn exponential(
    initial: Duration,
    multiplier: f64,
    max: Duration,
    failure_count: u32,
) -> Duration {
    let steps = f64::from(failure_count.saturating_sub(1));
    scale(initial, multiplier.powf(steps)).min(max)
}

/// Decorrelated jitter: uniform in `[initial, min(3 * previous, max)]`. `previous` is the delay that
/// the call before this one returned, and `initial` for the first call.
///
/// ```
/// use std::time::Duration;
/// use outbox::retry::{ThreadRandom, backoff};
///
/// let (initial, max) = (Duration::from_secs(1), Duration::from_secs(30));
/// let mut delay = initial;
/// for _ in 0..100 {
///     delay = backoff::decorrelated(delay, initial, max, &ThreadRandom);
///     assert!(initial <= delay && delay <= max);
/// }
/// ```
#[must_use]
pub fn decorrelated(
    previous: Duration,
    initial: Duration,
    max: Duration,
    random: &dyn Random,
) -> Duration {
    let high = previous.saturating_mul(3).min(max).max(initial);
    between(random, initial, high)
}

/// `duration * factor`, rounded to nanoseconds: at least zero, at most `Duration::MAX`.
pub(crate) fn scale(duration: Duration, factor: f64) -> Duration {
    let seconds = duration.as_secs_f64() * factor;
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn linear_adds_one_increment_per_failure_up_to_the_cap() {
        let delays = [1, 2, 3, 4, 5, 6, u32::MAX].map(|n| linear(secs(2), secs(3), secs(15), n));
        assert_eq!(delays, [2, 5, 8, 11, 14, 15, 15].map(secs));
    }

    #[test]
    fn exponential_multiplies_per_failure_up_to_the_cap() {
        let delays = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| exponential(secs(1), 2.0, secs(60), n));
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60].map(secs));
    }

    #[test]
    fn fractions_are_rounded_to_the_nanosecond() {
        let third = exponential(Duration::from_millis(100), 1.1, secs(60), 3);
        assert_eq!(third, Duration::from_nanos(121_000_000));
    }

    #[test]
    fn a_count_of_zero_is_read_as_the_first_failure() {
        assert_eq!(exponential(secs(1), 2.0, secs(9), 0), secs(1));
        assert_eq!(linear(secs(1), secs(2), secs(9), 0), secs(1));
    }

    fn any_duration() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (1..100_000u64).prop_map(Duration::from_millis),
            any::<u64>().prop_map(Duration::from_secs),
            Just(Duration::MAX),
        ]
    }

    proptest! {
        #[test]
        fn no_delay_leaves_its_interval(
            initial in any_duration(),
            increment in any_duration(),
            max in any_duration(),
            multiplier in prop_oneof![1.0001..10.0f64, Just(f64::MAX)],
            failure_count in prop_oneof![1..100u32, any::<u32>(), Just(u32::MAX)],
        ) {
            let lowest = initial.min(max);
            // One part in 10^12 for the rounding of a float; nothing where it is exact.
            let slack = lowest / 1_000_000_000;
            for delay in [
                linear(initial, increment, max, failure_count),
                exponential(initial, multiplier, max, failure_count),
            ] {
                prop_assert!(lowest.saturating_sub(slack) <= delay && delay <= max);
            }
        }

        #[test]
        fn a_later_failure_never_waits_less(
            initial in any_duration(),
            increment in any_duration(),
            max in any_duration(),
            multiplier in 1.0001..10.0f64,
            n in 1..u32::MAX,
        ) {
            prop_assert!(linear(initial, increment, max, n) <= linear(initial, increment, max, n + 1));
            prop_assert!(
                exponential(initial, multiplier, max, n) <= exponential(initial, multiplier, max, n + 1)
            );
        }

        #[test]
        fn decorrelated_stays_between_initial_and_cap(
            previous in any_duration(),
            initial in any_duration(),
            max in any_duration(),
            random: u64,
        ) {
            let max = max.max(initial);
            let delay = decorrelated(previous, initial, max, &move || random);
            prop_assert!(initial <= delay && delay <= max);
        }
    }
}
