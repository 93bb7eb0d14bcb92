//! Counters of retried transactions. Their handles are not kept, because failures are rare.

use super::names;
use crate::transaction::Reason;

/// Counts an attempt that failed because of a lock or a conflict.
pub(crate) fn failure(operation: &'static str, reason: Reason) {
    let metric = match reason {
        Reason::Deadlock => names::TRANSACTION_DEADLOCKS,
        Reason::SerializationFailure => names::TRANSACTION_SERIALIZATION_FAILURES,
        Reason::LockTimeout => names::TRANSACTION_LOCK_TIMEOUTS,
        _ => return,
    };
    metric.counter([operation.into()]).increment(1);
}

/// Another attempt follows.
pub(crate) fn retry(operation: &'static str, reason: Reason) {
    let labels = [operation.into(), reason.as_str().into()];
    names::TRANSACTION_RETRIES.counter(labels).increment(1);
}

/// The failure was retryable, and a limit forbids another attempt.
pub(crate) fn exhausted(operation: &'static str, reason: Reason) {
    let labels = [operation.into(), reason.as_str().into()];
    names::TRANSACTION_EXHAUSTED.counter(labels).increment(1);
}

/// The deadline leaves too little time for another attempt.
pub(crate) fn skipped_deadline(operation: &'static str) {
    let counter = names::TRANSACTION_SKIPPED.counter([operation.into()]);
    counter.increment(1);
}

/// The transaction committed after more than one attempt. More than ten are labelled `more`, so
/// that there are few series.
pub(crate) fn success_after_retry(operation: &'static str, attempts: u32) {
    let label = if attempts > 10 {
        "more".into()
    } else {
        attempts.to_string().into()
    };
    let counter = names::TRANSACTION_SUCCESSES.counter([operation.into(), label]);
    counter.increment(1);
}
