//! The loop around the attempts: what is tried again, and when.

use std::error::Error;

use jiff::Timestamp;

use super::{
    Cause, Deadline, Observer, Reason, Stopped, TransactionError, Transactions, TxRetry,
    attempt::{Cancel, Failure, Limits, Plan, Progress},
    budget::Bucket,
    deadline::{has_time, remaining},
    decide::{Failed, Next, decide},
    error::ClosureError,
    line::About,
    session::Tx,
};
use crate::store::Database;

/// What a run is told besides what all its attempts do.
pub(crate) struct Rules {
    pub(crate) policy: TxRetry,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) correlation_id: Option<String>,
}

impl<Db: Database> Transactions<Db> {
    /// Attempts until one succeeds or there is no sense in another.
    pub(crate) async fn attempts<T, E, Kind, F, Fut>(
        &self,
        plan: Plan<'_, Db, T>,
        mut rules: Rules,
        mut closure: F,
    ) -> Result<T, TransactionError<E>>
    where
        F: FnMut(Tx<Db>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: ClosureError<Kind>,
    {
        let operation = plan.operation;
        let start = self.clock.now();
        let end = rules.deadline.map(|deadline| deadline.from(start));
        self.bucket(operation, &rules.policy, start, |bucket, budget| {
            bucket.call(budget, start);
        });
        let (mut attempts, mut unknown) = (0, false);
        let mut last: Option<(Failure<E>, Reason)> = None;
        loop {
            let mut begun = true;
            let failure = match self.may_start(&rules.policy, attempts, end) {
                Err(stopped) => Failure::of(stopped),
                Ok(now) => {
                    attempts += 1;
                    let limits = Limits {
                        left: end.map(|end| remaining(end, now)),
                        cancel: rules.cancel.as_mut(),
                    };
                    let mut progress = Progress::default();
                    let result = plan
                        .attempt(attempts, limits, &mut closure, &mut progress)
                        .await;
                    begun = progress.begun;
                    if begun && self.shared.circuit().reached() {
                        tracing::info!("the database answers again: transactions start as before");
                    }
                    // Ours now, so an earlier commit of unknown outcome did not happen.
                    unknown &= !progress.claimed;
                    match result {
                        Ok(result) => {
                            if attempts > 1 {
                                self.observer.success_after_retry(operation, attempts);
                            }
                            return Ok(result);
                        }
                        Err(failure) => failure,
                    }
                }
            };
            let reason = failure.reason::<Db, Kind>(&rules.policy);
            unknown |= reason == Reason::CommitUnknown;
            let now = self.clock.now();
            self.count(operation, reason, begun, now);
            let failed = Failed {
                reason,
                attempts,
                has_command: plan.command.is_some(),
                now,
                end,
            };
            let mut next = decide(&rules.policy, &failed);
            if matches!(next, Next::Retry(_))
                && !self.bucket(operation, &rules.policy, now, |bucket, budget| {
                    bucket.take(budget, now)
                })
            {
                next = Next::Stop(Stopped::Budget);
            }
            let command_id = plan
                .command
                .as_ref()
                .map(|(command, _)| command.id.as_str());
            let about = |reason| About {
                operation,
                reason,
                command_id,
                correlation_id: rules.correlation_id.as_deref(),
            };
            let stopped = match next {
                Next::Stop(stopped) => stopped,
                Next::Retry(delay) => {
                    self.observer.retry(operation, reason);
                    let few = self.shared.retries.is_low(now);
                    about(reason).retry(attempts + 1, delay, few);
                    let mut limits = Limits {
                        left: None,
                        cancel: rules.cancel.as_mut(),
                    };
                    match limits.keep(self.sleeper.sleep(delay)).await {
                        Ok(()) => {
                            last = Some((failure, reason));
                            continue;
                        }
                        Err(_) => Stopped::Cancelled,
                    }
                }
            };
            // An attempt that was not allowed to start is no cause; the one before it is.
            let (failure, reason) = match (&failure.cause, last) {
                (Cause::Stopped, Some(last)) => last,
                _ => (failure, reason),
            };
            if !matches!(stopped, Stopped::NotRetryable | Stopped::Cancelled) {
                self.observer.exhausted(operation, reason);
                if stopped == Stopped::Deadline {
                    self.observer.skipped_deadline(operation);
                }
                about(reason).exhausted(attempts);
            }
            return Err(TransactionError {
                operation,
                attempts,
                stopped,
                reason,
                unknown,
                cause: failure.cause,
                as_error: as_error::<E, Kind>,
            });
        }
    }

    /// Whether an attempt may start, and what time it is then.
    fn may_start(
        &self,
        policy: &TxRetry,
        attempts: u32,
        end: Option<Timestamp>,
    ) -> Result<Timestamp, Reason> {
        let now = self.clock.now();
        // A retry was looked at when it was decided; then it waited, and the clock may have run.
        let least = if attempts == 0 {
            policy.min_attempt
        } else {
            std::time::Duration::ZERO
        };
        if end.is_some_and(|end| !has_time(end, now, std::time::Duration::ZERO, least)) {
            return Err(Reason::Deadline);
        }
        if !self.shared.circuit().admit(now) {
            return Err(Reason::CircuitOpen);
        }
        Ok(now)
    }

    /// Counts a failure where it has a counter of its own, and for the circuit.
    fn count(&self, operation: &'static str, reason: Reason, begun: bool, now: Timestamp) {
        let observer: &dyn Observer = &*self.observer;
        match reason {
            Reason::Deadlock => observer.deadlock(operation),
            Reason::SerializationFailure => observer.serialization_failure(operation),
            Reason::LockTimeout => observer.lock_timeout(operation),
            _ => {}
        }
        // Out of time before the transaction had begun: the database did not answer until then.
        let unreachable = reason.is_unreachable() || (reason == Reason::Deadline && !begun);
        if unreachable && self.shared.circuit().unreachable(now) {
            tracing::warn!(
                "the database is unreachable: transactions fail at once until a probe reaches it"
            );
        }
    }

    fn bucket<R>(
        &self,
        operation: &'static str,
        policy: &TxRetry,
        now: Timestamp,
        change: impl FnOnce(&mut Bucket, super::Budget) -> R,
    ) -> R {
        let mut buckets = self.shared.buckets();
        let bucket = buckets
            .entry(operation)
            .or_insert_with(|| Bucket::full(policy.budget, now));
        change(bucket, policy.budget)
    }
}

fn as_error<E: ClosureError<Kind>, Kind>(error: &E) -> &(dyn Error + 'static) {
    error.as_error()
}
