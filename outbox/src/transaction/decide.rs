//! [`decide`]: whether another attempt follows a failed one. Pure.

use std::time::Duration;

use super::{Reason, Stopped, TxRetry, deadline::has_time};

/// Returns the delay before the next attempt. `attempts` have started, and the last one failed for
/// this reason. `left` is the time until the deadline. With a command, the next attempt finds out
/// whether this one was committed.
pub(super) fn decide(
    policy: &TxRetry,
    reason: Reason,
    attempts: u32,
    has_command: bool,
    left: Option<Duration>,
) -> Result<Duration, Stopped> {
    let is_retried = match reason {
        Reason::Deadline => return Err(Stopped::Deadline),
        Reason::Cancelled => return Err(Stopped::Cancelled),
        Reason::CircuitOpen => return Err(Stopped::CircuitOpen),
        Reason::CommitUnknown => has_command,
        reason => policy.retries(reason),
    };
    if !is_retried {
        return Err(Stopped::NotRetryable);
    }
    if attempts >= policy.max_attempts {
        return Err(Stopped::Attempts);
    }
    let delay = policy.delay_before(attempts.saturating_add(1));
    if !has_time(left, delay.saturating_add(policy.min_attempt)) {
        return Err(Stopped::Deadline);
    }
    Ok(delay)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy() -> TxRetry {
        TxRetry::interactive().random(|| u64::MAX)
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Decides without a command and without a deadline.
    fn after(reason: Reason, attempts: u32) -> Result<Duration, Stopped> {
        decide(&policy(), reason, attempts, false, None)
    }

    #[test]
    fn a_retryable_failure_is_retried_until_no_attempts_are_left() {
        assert_eq!(after(Reason::Deadlock, 1), Ok(ms(50)));
        assert_eq!(after(Reason::Deadlock, 2), Ok(ms(100)));
        assert_eq!(after(Reason::Deadlock, 3), Err(Stopped::Attempts));
    }

    #[test]
    fn another_failure_is_not_retried() {
        let stop = Err(Stopped::NotRetryable);
        assert_eq!(after(Reason::UniqueViolation, 1), stop);
    }

    #[test]
    fn an_unknown_commit_is_retried_only_with_a_command() {
        let eager = policy().retry_on(Reason::CommitUnknown);
        let without = decide(&eager, Reason::CommitUnknown, 1, false, None);
        assert_eq!(without, Err(Stopped::NotRetryable));
        let with = decide(&policy(), Reason::CommitUnknown, 1, true, None);
        assert_eq!(with, Ok(ms(50)));
    }

    proptest! {
        #[test]
        fn no_attempt_starts_that_cannot_end_in_time(
            attempts in 1..10u32, left in 0..1000u64, random: u64,
        ) {
            let policy = TxRetry::background().random(move || random);
            let next = decide(&policy, Reason::Deadlock, attempts, false, Some(ms(left)));
            if let Ok(delay) = next {
                prop_assert!(attempts < 5);
                prop_assert!(delay + ms(500) < ms(left));
            }
        }
    }
}
