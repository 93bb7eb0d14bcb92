//! [`decide`]: what happens to a record after an attempt. A pure function of the outcome, the
//! failures before it, the policy and the time.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use jiff::Timestamp;

use super::{Completion, Decision, FailedBecause, RetryPolicy};
use crate::{
    handler::{FailureKind, HandlerError, Outcome, Panicked},
    outbox::clock::later,
    record::Attempt,
};

/// Decides what happens after an attempt.
///
/// `max_retries` is the limit with which the record was scheduled. It wins over the policy's limit.
///
/// - A permanent error and a payload that is not a valid event are final. The policy is not asked.
/// - [`HandlerError::unavailable`] is retried with the policy's delays and does not use up a retry. Only
///   `max_elapsed` ends it, if the policy has one.
/// - For any other error the policy decides: may this error be retried, is a retry left, is there
///   time left.
/// - `max_elapsed` counts from the first failure of any kind, `unavailable` included.
/// - If the policy panics, the failure is final. The error then names the handler's failure and the
///   panic.
///
/// ```
/// use std::time::Duration;
/// use outbox::{Retry, __private::{Attempt, Decision, FailedBecause, decide}, clock::{Clock, SystemClock}, handler::Outcome};
///
/// let policy = Retry::builder().max_retries(1).fixed(Duration::from_secs(9)).build()?;
/// let now = SystemClock.now();
///
/// let failed = || Outcome::Failed("the bank is closed".into());
/// let Decision::RetryAt { delay, next, .. } = decide(failed(), &Attempt::first(), None, &policy, now) else {
///     panic!("one retry is left");
/// };
/// assert_eq!((delay, next.number), (Duration::from_secs(9), 2));
///
/// let Decision::Failed { because, .. } = decide(failed(), &next, None, &policy, now) else {
///     panic!("no retry is left");
/// };
/// assert_eq!(because, FailedBecause::RetriesExhausted);
/// # Ok::<(), outbox::retry::PolicyError>(())
/// ```
pub fn decide(
    outcome: Outcome,
    attempt: &Attempt,
    max_retries: Option<u32>,
    policy: &dyn RetryPolicy,
    now: Timestamp,
) -> Decision {
    let error = match outcome {
        Outcome::Handled => return Decision::Completed(Completion::Handled),
        Outcome::Skipped => return Decision::Completed(Completion::Skipped),
        Outcome::Failed(error) => error,
    };
    // The policy may be user code. If it panics, the handler's error must survive.
    let verdict = catch_unwind(AssertUnwindSafe(|| {
        judge(&error, attempt, max_retries, policy, now)
    }));
    match verdict {
        Ok(Ok((delay, next))) => Decision::RetryAt {
            at: later(now, delay),
            delay,
            next,
            error,
        },
        Ok(Err(because)) => Decision::Failed { error, because },
        Err(panic) => Decision::Failed {
            error: error.followed_by("retry policy", &Panicked::with(&*panic)),
            because: FailedBecause::PolicyPanicked,
        },
    }
}

/// The delay before the next attempt and that attempt, or the reason why there is none.
fn judge(
    error: &HandlerError,
    attempt: &Attempt,
    max_retries: Option<u32>,
    policy: &dyn RetryPolicy,
    now: Timestamp,
) -> Result<(Duration, Attempt), FailedBecause> {
    let (delay, failure_count) = match error.kind() {
        FailureKind::Permanent => return Err(FailedBecause::Permanent),
        FailureKind::Undecodable | FailureKind::Invalid => return Err(FailedBecause::BadPayload),
        // `failure_count` does not grow here, so the delay grows with the number of attempts.
        FailureKind::Unavailable => (policy.next_delay(attempt.number), attempt.failure_count),
        FailureKind::Error
        | FailureKind::RetryAfter(_)
        | FailureKind::TimedOut
        | FailureKind::Panicked => counted(error, attempt, max_retries, policy)?,
    };
    let first_failed_at = attempt.first_failed_at.unwrap_or(now);
    if let Some(limit) = policy.max_elapsed()
        && later(now, delay) > later(first_failed_at, limit)
    {
        return Err(FailedBecause::TimeExhausted);
    }
    let next = Attempt {
        number: attempt.number.saturating_add(1),
        failure_count,
        first_failed_at: Some(first_failed_at),
    };
    Ok((delay, next))
}

/// For a failure that uses up a retry: the delay and the new number of such failures.
fn counted(
    error: &HandlerError,
    attempt: &Attempt,
    max_retries: Option<u32>,
    policy: &dyn RetryPolicy,
) -> Result<(Duration, u32), FailedBecause> {
    if !policy.should_retry(error) {
        return Err(FailedBecause::NotRetryable);
    }
    if attempt.failure_count >= max_retries.unwrap_or_else(|| policy.max_retries()) {
        return Err(FailedBecause::RetriesExhausted);
    }
    let failure_count = attempt.failure_count.saturating_add(1);
    let delay = match error.kind() {
        FailureKind::RetryAfter(delay) => delay,
        _ => policy.next_delay(failure_count),
    };
    Ok((delay, failure_count))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::retry::Retry;

    fn policy() -> crate::retry::RetryBuilder {
        Retry::builder().max_retries(2).linear(
            Duration::from_secs(1),
            Duration::from_secs(1),
            Duration::from_secs(60),
        )
    }

    fn io_error() -> HandlerError {
        io::Error::other("down").into()
    }

    /// Fails with the error until the policy gives up. Returns the delays and the reason.
    fn run(
        policy: crate::retry::RetryBuilder,
        max_retries: Option<u32>,
        mut error: impl FnMut() -> HandlerError,
    ) -> (Vec<u64>, FailedBecause) {
        let policy = policy.build().unwrap();
        let mut now = Timestamp::UNIX_EPOCH;
        let mut attempt = Attempt::first();
        let mut delays = Vec::new();
        loop {
            let outcome = Outcome::Failed(error());
            match decide(outcome, &attempt, max_retries, &policy, now) {
                Decision::RetryAt {
                    at, delay, next, ..
                } => {
                    assert_eq!(next.number, attempt.number + 1);
                    delays.push(delay.as_secs());
                    assert!(delays.len() < 1_000, "the retries do not end");
                    (now, attempt) = (at, next);
                }
                Decision::Failed { because, .. } => return (delays, because),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn n_retries_are_n_plus_one_invocations() {
        let exhausted = FailedBecause::RetriesExhausted;
        assert_eq!(run(policy(), None, io_error), (vec![1, 2], exhausted));
        assert_eq!(
            run(policy().max_retries(0), None, io_error),
            (vec![], exhausted)
        );
    }

    #[test]
    fn the_record_s_own_limit_wins_over_the_policy_s() {
        let exhausted = FailedBecause::RetriesExhausted;
        assert_eq!(
            run(policy(), Some(4), io_error),
            (vec![1, 2, 3, 4], exhausted)
        );
        assert_eq!(run(policy(), Some(0), io_error), (vec![], exhausted));
    }

    #[test]
    fn a_permanent_error_is_final_whatever_the_policy_says() {
        let permanent = || HandlerError::permanent(io::Error::other("gone"));
        assert_eq!(
            run(policy(), None, permanent),
            (vec![], FailedBecause::Permanent)
        );
    }

    #[test]
    fn an_error_that_the_policy_does_not_retry_is_final() {
        let policy = policy().no_retry_on::<io::Error>();
        assert_eq!(
            run(policy, None, io_error),
            (vec![], FailedBecause::NotRetryable)
        );
    }

    #[test]
    fn retry_after_overrides_the_delay_and_still_counts() {
        let busy = || HandlerError::retry_after(Duration::from_secs(99), "busy");
        assert_eq!(
            run(policy(), None, busy),
            (vec![99, 99], FailedBecause::RetriesExhausted)
        );
    }

    #[test]
    fn an_endless_retry_after_is_due_at_the_end_of_time() {
        let endless = HandlerError::retry_after(Duration::MAX, "busy");
        let decision = decide(
            Outcome::Failed(endless),
            &Attempt::first(),
            None,
            &Retry::default(),
            Timestamp::UNIX_EPOCH,
        );
        let Decision::RetryAt { at, .. } = decision else {
            panic!("{decision:?}")
        };
        assert_eq!(at, Timestamp::MAX);
    }

    #[test]
    fn an_unavailable_service_uses_up_no_retry() {
        let mut outages = 5;
        let (delays, because) = run(policy(), None, || {
            if outages > 0 {
                outages -= 1;
                return HandlerError::unavailable("503");
            }
            io_error()
        });
        assert_eq!(delays, [1, 2, 3, 4, 5, 1, 2]);
        assert_eq!(because, FailedBecause::RetriesExhausted);
    }

    #[test]
    fn no_retry_starts_after_max_elapsed() {
        let policy = policy()
            .max_retries(100)
            .max_elapsed(Duration::from_secs(6));
        // 1 + 2 + 3 = 6 s after the first failure is still within; 4 s more is not.
        assert_eq!(
            run(policy, None, io_error),
            (vec![1, 2, 3], FailedBecause::TimeExhausted)
        );
    }

    /// The delays are 1 s, 2 s, 3 s and so on. Each row: what fails, in order (`u`: unavailable, `e`: an
    /// error; the last one repeats), `max_retries`, `max_elapsed` in seconds, the delays, the reason.
    #[test]
    fn max_elapsed_counts_from_the_first_failure_of_any_kind_and_ends_every_kind() {
        use FailedBecause::{RetriesExhausted, TimeExhausted};
        type Row = (&'static str, u32, u64, &'static [u64], FailedBecause);
        let table: &[Row] = &[
            // 1 + 2 + 3 = 6 s is still within 6 s; 4 s more is not.
            ("u", 100, 6, &[1, 2, 3], TimeExhausted),
            ("u", 0, 6, &[1, 2, 3], TimeExhausted),
            ("u", 0, 5, &[1, 2], TimeExhausted),
            ("e", 100, 6, &[1, 2, 3], TimeExhausted),
            // The outage of 1 + 2 s counts: of 6 s, only 1 + 2 s are left for retries of the error.
            ("uue", 100, 6, &[1, 2, 1, 2], TimeExhausted),
            // After an error, the time that it took counts for the outage.
            ("eu", 100, 6, &[1, 2, 3], TimeExhausted),
            // The retries are used up before the time is.
            ("uue", 1, 60, &[1, 2, 1], RetriesExhausted),
            // No time at all: the first attempt was the last.
            ("u", 100, 0, &[], TimeExhausted),
        ];
        for (row, &(fails, max_retries, limit, delays, because)) in table.iter().enumerate() {
            // A limit of 0 s cannot be built; 1 ms is as short as any delay needs.
            let limit = Duration::from_secs(limit).max(Duration::from_millis(1));
            let policy = policy().max_retries(max_retries).max_elapsed(limit);
            let mut fails = fails.chars().peekable();
            let mut last = 'e';
            let ended = run(policy, None, || {
                last = fails.next().unwrap_or(last);
                match last {
                    'u' => HandlerError::unavailable("503"),
                    _ => io_error(),
                }
            });
            assert_eq!(ended, (delays.to_vec(), because), "row {row}");
        }
    }

    #[test]
    fn an_outage_without_max_elapsed_never_ends() {
        let policy = policy().max_retries(0).build().unwrap();
        let (mut attempt, mut now) = (Attempt::first(), Timestamp::UNIX_EPOCH);
        for _ in 0..10_000 {
            let failed = Outcome::Failed(HandlerError::unavailable("503"));
            let decision = decide(failed, &attempt, None, &policy, now);
            let Decision::RetryAt { at, next, .. } = decision else {
                panic!("{decision:?}")
            };
            assert_eq!(next.first_failed_at, Some(Timestamp::UNIX_EPOCH));
            (now, attempt) = (at, next);
        }
    }

    #[test]
    fn success_and_a_declined_guard_complete() {
        let decide = |outcome| {
            decide(
                outcome,
                &Attempt::first(),
                None,
                &Retry::default(),
                Timestamp::UNIX_EPOCH,
            )
        };
        assert!(matches!(
            decide(Outcome::Handled),
            Decision::Completed(Completion::Handled)
        ));
        assert!(matches!(
            decide(Outcome::Skipped),
            Decision::Completed(Completion::Skipped)
        ));
    }
}
