//! [`decide`]: whether another attempt follows a failed one. Pure.

use std::time::Duration;

use jiff::Timestamp;

use super::{Reason, Stopped, TxRetry, deadline::has_time};

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed {
    pub(super) reason: Reason,
    /// The number of attempts, including this one.
    pub(super) attempts: u32,
    /// With a command, the next attempt finds out whether this one was committed.
    pub(super) has_command: bool,
    pub(super) now: Timestamp,
    pub(super) end: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another attempt follows after this delay, if the budget allows it.
    Retry(Duration),
    Stop(Stopped),
}

pub(super) fn decide(policy: &TxRetry, failed: &Failed) -> Next {
    let stopped = match failed.reason {
        Reason::Deadline => Some(Stopped::Deadline),
        Reason::Cancelled => Some(Stopped::Cancelled),
        Reason::CircuitOpen => Some(Stopped::CircuitOpen),
        Reason::CommitUnknown if !failed.has_command => Some(Stopped::NotRetryable),
        Reason::CommitUnknown => None,
        reason if !policy.retries(reason) => Some(Stopped::NotRetryable),
        _ => None,
    };
    if let Some(stopped) = stopped {
        return Next::Stop(stopped);
    }
    if failed.attempts >= policy.max_attempts {
        return Next::Stop(Stopped::Attempts);
    }
    let delay = policy.delay_before(failed.attempts.saturating_add(1));
    match failed.end {
        Some(end) if !has_time(end, failed.now, delay, policy.min_attempt) => {
            Next::Stop(Stopped::Deadline)
        }
        _ => Next::Retry(delay),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outbox::clock::later;

    fn failed(reason: Reason) -> Failed {
        Failed {
            reason,
            attempts: 1,
            has_command: false,
            now: Timestamp::UNIX_EPOCH,
            end: None,
        }
    }

    fn policy() -> TxRetry {
        TxRetry::interactive().random(|| u64::MAX)
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_retryable_failure_is_retried_until_no_attempts_are_left() {
        let mut deadlock = failed(Reason::Deadlock);
        assert_eq!(decide(&policy(), &deadlock), Next::Retry(ms(50)));
        deadlock.attempts = 2;
        assert_eq!(decide(&policy(), &deadlock), Next::Retry(ms(100)));
        deadlock.attempts = 3;
        let stop = Next::Stop(Stopped::Attempts);
        assert_eq!(decide(&policy(), &deadlock), stop);
    }

    #[test]
    fn another_failure_is_not_retried() {
        let stop = Next::Stop(Stopped::NotRetryable);
        assert_eq!(decide(&policy(), &failed(Reason::UniqueViolation)), stop);
    }

    #[test]
    fn an_unknown_commit_is_retried_only_with_a_command() {
        let mut unknown = failed(Reason::CommitUnknown);
        let eager = policy().retry_on(Reason::CommitUnknown);
        let stop = Next::Stop(Stopped::NotRetryable);
        assert_eq!(decide(&eager, &unknown), stop);
        unknown.has_command = true;
        assert_eq!(decide(&policy(), &unknown), Next::Retry(ms(50)));
    }

    proptest! {
        #[test]
        fn no_attempt_starts_that_cannot_end_in_time(
            attempts in 1..10u32, left in 0..1000u64, random: u64,
        ) {
            let policy = TxRetry::background().random(move || random);
            let mut deadlock = failed(Reason::Deadlock);
            deadlock.attempts = attempts;
            deadlock.end = Some(later(deadlock.now, ms(left)));
            if let Next::Retry(delay) = decide(&policy, &deadlock) {
                prop_assert!(attempts < 5);
                prop_assert!(delay + ms(500) < ms(left));
            }
        }
    }
}
