//! Metrics of transactions. Their handles are not kept: making one costs far less than a transaction.

use super::{is_recorded, names};
use crate::transaction::Reason;

/// How a call of a transaction ended: the label `outcome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// An earlier call stored the result of the command.
    Replayed,
    Failed(Reason),
    /// No attempt started.
    Refused(Reason),
    /// The connection was lost during the commit.
    Unknown(Reason),
}

impl Outcome {
    fn labels(self) -> [&'static str; 2] {
        match self {
            Self::Committed => ["committed", "none"],
            Self::Replayed => ["replayed", "none"],
            Self::Failed(reason) => ["failed", reason.as_str()],
            Self::Refused(reason) => ["refused", reason.as_str()],
            Self::Unknown(reason) => ["unknown", reason.as_str()],
        }
    }
}

/// Counts a call that ended.
pub(crate) fn ended(operation: &'static str, outcome: Outcome) {
    if is_recorded() {
        let [outcome, reason] = outcome.labels();
        let labels = [operation.into(), outcome.into(), reason.into()];
        names::TRANSACTIONS.counter(labels).increment(1);
    }
}

/// Whether transactions are refused.
pub(crate) fn circuit(is_open: bool) {
    let gauge = names::TRANSACTION_CIRCUIT_OPEN.gauge([]);
    gauge.set(if is_open { 1.0 } else { 0.0 });
}

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
