//! [`Run`]: the attempts of one transaction.

use std::{sync::atomic::Ordering, time::Duration};

use jiff::Timestamp;

use super::{
    Cause, Reason, Stopped, TransactionError, Transactions, Tx,
    attempt::{Found, Progress, Reached},
    budget::Bucket,
    closure_error::AsError,
    command, deadline,
    decide::decide,
    failure::Failure,
    limits, log,
    retrying_transaction::Settings,
};
use crate::{
    store::Database,
    telemetry::metrics::{
        is_recorded,
        transactions::{self as metrics, Outcome},
    },
};

/// One call of `RetryingTransaction::run`: everything that its attempts share.
pub(super) struct Run<'a, Db: Database, T, E> {
    pub(super) transactions: &'a Transactions<Db>,
    pub(super) settings: &'a Settings,
    pub(super) command: Option<(command::Command, command::Codec<T>)>,
    pub(super) as_error: AsError<E>,
}

impl<Db: Database, T, E> Run<'_, Db, T, E> {
    /// Starts attempts until one succeeds or another one is not allowed.
    pub(super) async fn attempts<Fut>(
        &self,
        cancel: &mut Option<limits::Cancel>,
        mut closure: impl FnMut(Tx<'static, Db>) -> Fut,
    ) -> Result<T, TransactionError<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        let operation = self.settings.operation;
        let (budget, clock) = (self.settings.policy.budget, &self.transactions.clock);
        let start = clock.now();
        let end = self.settings.deadline.map(|deadline| deadline.from(start));
        let shared = &self.transactions.shared;
        shared.with_bucket(operation, budget, start, Bucket::on_call);
        if is_recorded() && !shared.shows_circuit.swap(true, Ordering::Relaxed) {
            metrics::circuit(false);
        }
        let (mut attempts, mut is_unknown) = (0, false);
        let mut previous: Option<Failure<E>> = None;
        loop {
            let failure = match self.may_start(attempts, end) {
                Err(reason) => Failure::new(Cause::Stopped, reason),
                Ok(left) => {
                    attempts += 1;
                    let mut progress = Progress::default();
                    let attempt = self.attempt(attempts, left, cancel, &mut closure, &mut progress);
                    let result = attempt.await;
                    let reason = result.as_ref().err().map(|failure| failure.reason);
                    self.update_circuit(&progress, reason);
                    // The command is new, so an earlier commit of unknown outcome did not happen.
                    is_unknown &= progress.command != Some(Found::Nothing);
                    match result {
                        Ok(result) => {
                            self.report_success(&progress, attempts);
                            return Ok(result);
                        }
                        Err(failure) => failure,
                    }
                }
            };
            metrics::failure(operation, failure.reason);
            is_unknown |= failure.reason == Reason::CommitUnknown;
            let stopped = match self.next(failure.reason, attempts, end) {
                Err(stopped) => stopped,
                Ok(delay) => {
                    metrics::retry(operation, failure.reason);
                    self.log_retry(attempts + 1, failure.reason, delay);
                    let sleep = clock.sleep(delay);
                    if limits::within_limits(sleep, None, cancel).await.is_ok() {
                        previous = Some(failure);
                        continue;
                    }
                    Stopped::Cancelled
                }
            };
            // If the caller's limits stopped an attempt, the failure of the one before it says more.
            let last = match (failure.reason, previous) {
                (Reason::Deadline | Reason::Cancelled | Reason::CircuitOpen, Some(previous)) => {
                    previous
                }
                _ => failure,
            };
            let outcome = match attempts {
                _ if is_unknown => Outcome::Unknown(last.reason),
                0 => Outcome::Refused(last.reason),
                _ => Outcome::Failed(last.reason),
            };
            metrics::ended(operation, outcome);
            self.report_end(stopped, last.reason, attempts);
            return Err(TransactionError {
                operation,
                attempts,
                stopped,
                reason: last.reason,
                is_unknown,
                cause: last.cause,
                as_error: self.as_error,
            });
        }
    }

    /// Whether an attempt may start. Returns the time that is left for it.
    fn may_start(&self, attempts: u32, end: Option<Timestamp>) -> Result<Option<Duration>, Reason> {
        let now = self.transactions.clock.now();
        let left = end.map(|end| deadline::remaining(end, now));
        // `decide` has checked a retry already. It only must not start after the deadline.
        let needed = if attempts == 0 {
            self.settings.policy.min_attempt
        } else {
            Duration::ZERO
        };
        if !deadline::has_time(left, needed) {
            return Err(Reason::Deadline);
        }
        let circuit = self.settings.policy.circuit;
        if !self.transactions.shared.database().admit(circuit, now) {
            return Err(Reason::CircuitOpen);
        }
        Ok(left)
    }

    /// Decides whether another attempt follows, and takes it from the budget. Returns the delay.
    fn next(
        &self,
        reason: Reason,
        attempts: u32,
        end: Option<Timestamp>,
    ) -> Result<Duration, Stopped> {
        let (operation, policy) = (self.settings.operation, &self.settings.policy);
        let (shared, now) = (&self.transactions.shared, self.transactions.clock.now());
        let left = end.map(|end| deadline::remaining(end, now));
        let delay = decide(policy, reason, attempts, self.command.is_some(), left)?;
        if !shared.with_bucket(operation, policy.budget, now, Bucket::take) {
            return Err(Stopped::Budget);
        }
        Ok(delay)
    }

    /// Tells the circuit whether an attempt reached the database. `failure` is `None` if the
    /// attempt succeeded.
    fn update_circuit(&self, progress: &Progress, failure: Option<Reason>) {
        let (shared, now) = (&self.transactions.shared, self.transactions.clock.now());
        if progress.reached == Reached::Transaction && shared.database().on_reached() {
            metrics::circuit(false);
            log::circuit_closed();
        }
        // A limit passed without a begun transaction: the database did not answer, or, where a
        // transaction begins with a lock, the lock was not free.
        let is_silent = match progress.reached {
            Reached::Nothing => true,
            Reached::Connection => !Db::BEGIN_WAITS,
            Reached::Transaction => false,
        };
        let is_unreachable = failure.is_some_and(|reason| match reason {
            Reason::Deadline | Reason::AttemptTimeout => is_silent,
            reason => reason.is_unreachable(),
        });
        let circuit = self.settings.policy.circuit;
        if is_unreachable && shared.database().on_unreachable(circuit, now) {
            metrics::circuit(true);
            log::circuit_opened();
        }
    }

    fn report_success(&self, progress: &Progress, attempts: u32) {
        let operation = self.settings.operation;
        let outcome = match progress.command {
            Some(Found::Result) => Outcome::Replayed,
            Some(Found::Nothing) | None => Outcome::Committed,
        };
        metrics::ended(operation, outcome);
        if attempts > 1 {
            metrics::success_after_retry(operation, attempts);
        }
    }

    /// Counts and logs a retryable failure that no other attempt follows.
    fn report_end(&self, stopped: Stopped, reason: Reason, attempts: u32) {
        if matches!(stopped, Stopped::NotRetryable | Stopped::Cancelled) {
            return;
        }
        metrics::exhausted(self.settings.operation, reason);
        if stopped == Stopped::Deadline {
            metrics::skipped_deadline(self.settings.operation);
        }
        if stopped == Stopped::CircuitOpen {
            self.log_refused(attempts);
        } else {
            self.log_exhausted(attempts, reason);
        }
    }
}
