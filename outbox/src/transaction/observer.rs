//! [`Observer`]: where the counters of transactions go.

use std::fmt;

use super::Reason;

/// Is told what happens to transactions; each call stands for a counter. Does nothing unless it
/// is implemented. Operations are names in the source, so labels are few.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use outbox::transaction::{Observer, Reason};
///
/// #[derive(Debug, Default)]
/// struct Retries(AtomicU64);
///
/// impl Observer for Retries {
///     fn retry(&self, _operation: &'static str, _reason: Reason) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
/// ```
pub trait Observer: fmt::Debug + Send + Sync {
    /// `transaction.retry.attempt.count{operation, reason}`: another attempt follows.
    fn retry(&self, operation: &'static str, reason: Reason) {
        let _ = (operation, reason);
    }

    /// `transaction.retry.exhausted.count{operation, reason}`: it could be retried, and is not.
    fn exhausted(&self, operation: &'static str, reason: Reason) {
        let _ = (operation, reason);
    }

    /// `transaction.retry.success_after_retry.count{operation, attempts}`: still a sign of
    /// contention.
    fn success_after_retry(&self, operation: &'static str, attempts: u32) {
        let _ = (operation, attempts);
    }

    /// `transaction.deadlock.count{operation}`.
    fn deadlock(&self, operation: &'static str) {
        let _ = operation;
    }

    /// `transaction.serialization_failure.count{operation}`.
    fn serialization_failure(&self, operation: &'static str) {
        let _ = operation;
    }

    /// `transaction.lock_timeout.count{operation}`.
    fn lock_timeout(&self, operation: &'static str) {
        let _ = operation;
    }

    /// `transaction.retry.skipped_deadline.count{operation}`: there was no time for another
    /// attempt.
    fn skipped_deadline(&self, operation: &'static str) {
        let _ = operation;
    }
}

/// Nobody looks.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Observer for Nobody {}
