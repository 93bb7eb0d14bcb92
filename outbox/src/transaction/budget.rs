//! [`Budget`]: how many retries the callers of one operation have together.

use jiff::Timestamp;

use super::deadline::remaining;

/// How many retries all callers of one operation have together, in one process: a bucket of
/// tokens. A retry takes one; each call brings a part of one, and time brings some.
///
/// When everything fails, retries cannot multiply the load by the number of attempts: beyond the
/// bucket there is at most one retry for each `1 / per_call` calls, and `per_second` of them.
///
/// ```
/// use outbox::transaction::{Budget, TxRetry};
///
/// // At most one retry for ten calls, and one per second where there are few calls.
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

/// Tokens are counted in thousandths.
const TOKEN: u64 = 1000;

impl Budget {
    /// A bucket of that many retries, full at first; the part of a retry that each call brings
    /// (from 0 to 1); the retries that each second brings.
    pub fn new(size: u32, per_call: f64, per_second: u32) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 1000; NaN becomes 0"
        )]
        let per_call = (per_call.clamp(0.0, 1.0) * 1000.0).round() as u64;
        Self {
            size: u64::from(size) * TOKEN,
            per_call,
            per_second: u64::from(per_second) * TOKEN,
        }
    }
}

impl Default for Budget {
    /// 100 retries; one for five calls, and ten per second.
    fn default() -> Self {
        Self::new(100, 0.2, 10)
    }
}

/// The tokens of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    tokens: u64,
    at: Timestamp,
}

impl Bucket {
    pub(crate) fn full(budget: Budget, now: Timestamp) -> Self {
        Self {
            tokens: budget.size,
            at: now,
        }
    }

    fn refill(&mut self, budget: Budget, now: Timestamp) {
        let millis = remaining(now, self.at).as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        let brought = millis.saturating_mul(budget.per_second) / 1000;
        // Less than a thousandth of a token is not lost: the time stays where it was.
        if brought > 0 || budget.per_second == 0 || now < self.at {
            self.at = now;
        }
        self.tokens = self.tokens.saturating_add(brought).min(budget.size);
    }

    /// Somebody calls the operation.
    pub(crate) fn call(&mut self, budget: Budget, now: Timestamp) {
        self.refill(budget, now);
        self.tokens = (self.tokens + budget.per_call).min(budget.size);
    }

    /// Whether there is a retry left; it is taken.
    #[must_use]
    pub(crate) fn take(&mut self, budget: Budget, now: Timestamp) -> bool {
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

    use super::*;
    use crate::outbox::clock::later;

    #[test]
    fn an_empty_bucket_fills_by_calls_and_by_time() {
        let (budget, mut now) = (Budget::new(2, 0.5, 1), Timestamp::UNIX_EPOCH);
        let mut bucket = Bucket::full(budget, now);
        assert!(bucket.take(budget, now));
        assert!(bucket.take(budget, now));
        assert!(!bucket.take(budget, now));
        bucket.call(budget, now);
        assert!(!bucket.take(budget, now));
        bucket.call(budget, now);
        assert!(bucket.take(budget, now));
        now = later(now, Duration::from_secs(1));
        assert!(bucket.take(budget, now));
        assert!(!bucket.take(budget, now));
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
                    bucket.call(budget, now);
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
