//! [`Budget`]: the number of retries that all calls of one operation share.

use jiff::Timestamp;

use super::deadline::remaining;

/// The number of retries that all calls of one operation share, in one process. It is a bucket of
/// tokens: a retry takes one token, each call adds a fraction of a token, and each second adds
/// some tokens.
///
/// So retries cannot multiply the load when every attempt fails. Once the bucket is empty, there
/// is at most one retry for `1 / per_call` calls, plus `per_second` retries a second.
///
/// ```
/// use outbox::transaction::{Budget, TxRetry};
///
/// // 20 retries at first; then one for ten calls, and one a second.
/// let policy = TxRetry::background().budget(Budget::new(20, 0.1, 1));
/// # let _ = policy;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a budget is part of a policy"]
pub struct Budget {
    size: u64,
    per_call: u64,
    per_second: u64,
}

/// One token. Tokens are counted in thousandths.
const TOKEN: u64 = 1000;

impl Budget {
    /// A bucket of `size` retries, which is full at first. Each call adds `per_call` retries (from
    /// 0 to 1), and each second adds `per_second` retries.
    pub fn new(size: u32, per_call: f64, per_second: u32) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 1000; NaN becomes 0"
        )]
        let thousandths = (per_call.clamp(0.0, 1.0) * 1000.0).round() as u64;
        Self {
            size: u64::from(size) * TOKEN,
            per_call: thousandths,
            per_second: u64::from(per_second) * TOKEN,
        }
    }
}

impl Default for Budget {
    /// 100 retries; then one for five calls, and ten a second.
    fn default() -> Self {
        Self::new(100, 0.2, 10)
    }
}

/// The tokens of one operation, and the time of the last refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bucket {
    tokens: u64,
    refilled_at: Timestamp,
}

impl Bucket {
    pub(super) fn full(budget: Budget, now: Timestamp) -> Self {
        Self {
            tokens: budget.size,
            refilled_at: now,
        }
    }

    fn refill(&mut self, budget: Budget, now: Timestamp) {
        let millis = u64::try_from(remaining(now, self.refilled_at).as_millis());
        let added = millis.unwrap_or(u64::MAX).saturating_mul(budget.per_second) / 1000;
        // If the time adds less than a thousandth of a token, it counts for the next refill.
        if added > 0 || budget.per_second == 0 || now < self.refilled_at {
            self.refilled_at = now;
        }
        self.tokens = self.tokens.saturating_add(added).min(budget.size);
    }

    pub(super) fn on_call(&mut self, budget: Budget, now: Timestamp) {
        self.refill(budget, now);
        self.tokens = (self.tokens + budget.per_call).min(budget.size);
    }

    /// Takes the token of one retry. Returns `false` if there is none.
    #[must_use]
    pub(super) fn take(&mut self, budget: Budget, now: Timestamp) -> bool {
        self.refill(budget, now);
        let left = self.tokens.checked_sub(TOKEN);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{super::TxRetry, *};
    use crate::outbox::clock::later;

    #[test]
    fn an_empty_bucket_fills_by_calls_and_by_time() {
        let (budget, mut now) = (Budget::new(2, 0.5, 1), Timestamp::UNIX_EPOCH);
        let mut bucket = Bucket::full(budget, now);
        assert!(bucket.take(budget, now));
        assert!(bucket.take(budget, now));
        assert!(!bucket.take(budget, now));
        bucket.on_call(budget, now);
        assert!(!bucket.take(budget, now));
        bucket.on_call(budget, now);
        assert!(bucket.take(budget, now));
        now = later(now, Duration::from_secs(1));
        assert!(bucket.take(budget, now));
        assert!(!bucket.take(budget, now));
    }

    #[test]
    fn the_default_is_100_retries_one_for_five_calls_and_ten_a_second() {
        let (budget, mut now) = (Budget::default(), Timestamp::UNIX_EPOCH);
        let mut bucket = Bucket::full(budget, now);
        let taken = |bucket: &mut Bucket, now| {
            let tries = std::iter::repeat_with(|| bucket.take(budget, now));
            tries.take_while(|is_taken| *is_taken).count()
        };
        assert_eq!(taken(&mut bucket, now), 100);
        (0..25).for_each(|_| bucket.on_call(budget, now));
        assert_eq!(taken(&mut bucket, now), 5);
        now = later(now, Duration::from_secs(1));
        assert_eq!(taken(&mut bucket, now), 10);
        now = later(now, Duration::from_secs(3600));
        assert_eq!(taken(&mut bucket, now), 100);
        assert_eq!(TxRetry::interactive().budget, budget);
        assert_eq!(TxRetry::background().budget, budget);
        assert_eq!(TxRetry::publish().budget, budget);
    }

    proptest! {
        #[test]
        fn retries_are_bounded_by_size_calls_and_time(
            steps in proptest::collection::vec((any::<bool>(), 0..500u64), 1..300),
            size in 0..20u32, per_second in 0..5u32,
        ) {
            let budget = Budget::new(size, 0.2, per_second);
            let mut now = Timestamp::UNIX_EPOCH;
            let mut bucket = Bucket::full(budget, now);
            let (mut calls, mut retries, mut millis) = (0u64, 0u64, 0u64);
            for (call, wait) in steps {
                now = later(now, Duration::from_millis(wait));
                millis += wait;
                if call {
                    bucket.on_call(budget, now);
                    calls += 1;
                } else {
                    retries += u64::from(bucket.take(budget, now));
                }
            }
            let most = u64::from(size) * 1000 + calls * 200 + millis * u64::from(per_second);
            prop_assert!(retries * 1000 <= most, "{retries} retries of {most} thousandths");
        }
    }
}
