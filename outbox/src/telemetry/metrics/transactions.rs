//! [`Metered`]: counts what happens to transactions, beside telling the caller's own observer.

use std::{borrow::Cow, sync::Arc};

use crate::telemetry::metrics::names;
use crate::transaction::{Observer, Reason};

/// Retries are rare, and followed by a pause: handles are not kept.
#[derive(Debug)]
pub(crate) struct Metered(pub(crate) Arc<dyn Observer>);

/// Numbers of attempts that are told apart.
const ATTEMPTS: [&str; 11] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];

impl Observer for Metered {
    fn retry(&self, operation: &'static str, reason: Reason) {
        let values = [operation.into(), reason.as_str().into()];
        names::TRANSACTION_RETRIES.counter(values).increment(1);
        self.0.retry(operation, reason);
    }

    fn exhausted(&self, operation: &'static str, reason: Reason) {
        let values = [operation.into(), reason.as_str().into()];
        names::TRANSACTION_EXHAUSTED.counter(values).increment(1);
        self.0.exhausted(operation, reason);
    }

    fn success_after_retry(&self, operation: &'static str, attempts: u32) {
        let known = usize::try_from(attempts).ok().and_then(|n| ATTEMPTS.get(n));
        let values = [operation.into(), Cow::Borrowed(*known.unwrap_or(&"more"))];
        names::TRANSACTION_SUCCESSES.counter(values).increment(1);
        self.0.success_after_retry(operation, attempts);
    }

    fn deadlock(&self, operation: &'static str) {
        let counter = names::TRANSACTION_DEADLOCKS.counter([operation.into()]);
        counter.increment(1);
        self.0.deadlock(operation);
    }

    fn serialization_failure(&self, operation: &'static str) {
        let counter = names::TRANSACTION_SERIALIZATION_FAILURES.counter([operation.into()]);
        counter.increment(1);
        self.0.serialization_failure(operation);
    }

    fn lock_timeout(&self, operation: &'static str) {
        let counter = names::TRANSACTION_LOCK_TIMEOUTS.counter([operation.into()]);
        counter.increment(1);
        self.0.lock_timeout(operation);
    }

    fn skipped_deadline(&self, operation: &'static str) {
        let counter = names::TRANSACTION_SKIPPED.counter([operation.into()]);
        counter.increment(1);
        self.0.skipped_deadline(operation);
    }
}
