//! [`Random`]: the source of the random numbers for jitter. A test can replace it.

use std::time::Duration;

use rand::Rng as _;

/// A source of uniformly distributed random numbers.
///
/// Every closure `Fn() -> u64` implements it, so a test can choose the numbers:
///
/// ```
/// use std::time::Duration;
/// use outbox::{Retry, RetryPolicy, retry::Jitter};
///
/// let retry = Retry::builder()
///     .fixed(Duration::from_secs(10))
///     .jitter(Jitter::Full)
///     .random(|| u64::MAX / 2)
///     .build()?;
/// assert_eq!(retry.next_delay(1).as_secs_f64().round(), 5.0);
/// # Ok::<(), outbox::retry::PolicyError>(())
/// ```
pub trait Random: Send + Sync {
    /// A random `u64`. All values are equally likely.
    fn next_u64(&self) -> u64;
}

impl<F: Fn() -> u64 + Send + Sync> Random for F {
    fn next_u64(&self) -> u64 {
        self()
    }
}

/// The default source: the generator of the current thread, seeded by the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadRandom;

impl Random for ThreadRandom {
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }
}

/// A random duration in `[low, high]`, both ends included. `low` if the interval is empty.
///
/// It computes `span * random / 2^64` in whole nanoseconds. The product is split into two halves,
/// so no interval up to [`Duration::MAX`] overflows or loses precision.
pub(crate) fn between(random: &dyn Random, low: Duration, high: Duration) -> Duration {
    let span = match high.checked_sub(low) {
        None | Some(Duration::ZERO) => return low,
        Some(span) => span.as_nanos() + 1,
    };
    let random = u128::from(random.next_u64());
    let upper = (span >> 64) * random;
    let lower = ((span & u128::from(u64::MAX)) * random) >> 64;
    low.saturating_add(Duration::from_nanos_u128(upper + lower))
        .min(high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_duration() -> impl Strategy<Value = Duration> {
        (any::<u64>(), 0..1_000_000_000u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos))
    }

    proptest! {
        #[test]
        fn between_stays_within_its_ends(a in any_duration(), b in any_duration(), random: u64) {
            let (low, high) = (a.min(b), a.max(b));
            let drawn = between(&move || random, low, high);
            prop_assert!(low <= drawn && drawn <= high);
        }
    }

    #[test]
    fn between_reaches_both_ends() {
        let (low, high) = (Duration::from_nanos(10), Duration::from_nanos(12));
        assert_eq!(between(&|| 0, low, high), low);
        assert_eq!(between(&|| u64::MAX, low, high), high);
        assert_eq!(
            between(&|| u64::MAX, Duration::ZERO, Duration::MAX).as_secs(),
            u64::MAX
        );
    }

    #[test]
    fn an_empty_interval_is_its_lower_end() {
        let (low, high) = (Duration::from_secs(2), Duration::from_secs(1));
        assert_eq!(between(&ThreadRandom, low, high), low);
    }
}
