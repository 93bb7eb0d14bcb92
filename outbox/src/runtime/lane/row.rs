//! The rows that tell what became of a delivery.

use crate::runtime::lane::Work;
use crate::{
    record::{Attempt, DeliveryStatus, Record, failure::Failure},
    store::{DeliveryRow, FailureRow},
};

/// A delivery that is done.
pub(crate) fn completed_row(work: &Work, handler: &'static str) -> DeliveryRow {
    completed(waiting(work.part, &work.record, handler, work.attempt))
}

/// The same delivery, done.
pub(super) fn completed(row: DeliveryRow) -> DeliveryRow {
    DeliveryRow {
        status: DeliveryStatus::Completed,
        blocking: false,
        ..row
    }
}

/// The same after this failure.
pub(super) fn failed(row: DeliveryRow, failure: &FailureRow) -> DeliveryRow {
    DeliveryRow {
        error: Some(failure.error.clone()),
        error_kind: Some(failure.kind),
        fingerprint: Some(failure.fingerprint.clone()),
        ..row
    }
}

/// A delivery that waits for its turn.
pub(super) fn waiting(
    part: u16,
    record: &Record,
    handler: &'static str,
    attempt: Attempt,
) -> DeliveryRow {
    DeliveryRow {
        record_id: record.id,
        part,
        key: record.key.clone(),
        handler,
        status: DeliveryStatus::Waiting,
        blocking: true,
        attempt: attempt.number,
        failure_count: attempt.failure_count,
        first_failed_at: attempt.first_failed_at.map(|at| at.as_microsecond()),
        delay: None,
        was: attempt.number,
        error: None,
        error_kind: None,
        fingerprint: None,
    }
}

/// An attempt that failed, for the history.
pub(super) fn failure_row(work: &Work, handler: &'static str, failure: Failure) -> FailureRow {
    FailureRow {
        record_id: work.record.id,
        part: work.part,
        handler,
        attempt: work.attempt.number,
        kind: failure.kind_name(),
        fingerprint: failure.fingerprint,
        error: failure.text,
    }
}
