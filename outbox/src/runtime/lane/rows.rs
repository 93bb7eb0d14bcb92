//! The rows that say what became of a delivery.

use super::{attempt_end::AttemptEnd, burst::Work};
use crate::{
    record::{Attempt, DeliveryStatus, Record, failure::Failure},
    store::{DeliveryRow, FailureRow, micros},
};

/// A delivery that its handler completed.
pub(crate) fn completed_row(work: &Work, handler: &'static str) -> DeliveryRow {
    completed(row_of(work, handler))
}

/// What an attempt makes of its delivery, and the failure for the history if it failed.
/// `holds_lane`: later records of the lane wait while it is retried. `skips_failed`: they do not
/// wait once it failed for good.
pub(super) fn rows_after(
    work: &Work,
    handler: &'static str,
    end: AttemptEnd,
    holds_lane: bool,
    skips_failed: bool,
) -> (DeliveryRow, Option<FailureRow>) {
    let row = row_of(work, handler);
    match end {
        AttemptEnd::Handled | AttemptEnd::Skipped => (completed(row), None),
        // The failure stays in the history although the fallback completed the record.
        AttemptEnd::FellBack { failure, .. } => {
            (completed(row), Some(failure_row(work, handler, failure)))
        }
        AttemptEnd::Retry {
            delay,
            next,
            failure,
        } => {
            let row = DeliveryRow {
                status: DeliveryStatus::Retrying,
                blocking: holds_lane,
                attempt: next.number,
                failure_count: next.failure_count,
                first_failed_at: next.first_failed_at.map(|at| at.as_microsecond()),
                due_in: Some(micros(delay)),
                ..row
            };
            with_failure(row, failure_row(work, handler, failure))
        }
        AttemptEnd::Failed { failure, .. } => {
            let row = DeliveryRow {
                status: DeliveryStatus::Failed,
                blocking: holds_lane && !skips_failed,
                ..row
            };
            with_failure(row, failure_row(work, handler, failure))
        }
        AttemptEnd::NoHandler => (row, None),
    }
}

/// A delivery that waits until nothing stands before it in its lane.
pub(super) fn waiting_row(
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
        due_in: None,
        expected_attempt: attempt.number,
        error: None,
        error_kind: None,
        fingerprint: None,
    }
}

fn row_of(work: &Work, handler: &'static str) -> DeliveryRow {
    waiting_row(work.part, &work.record, handler, work.attempt)
}

fn completed(row: DeliveryRow) -> DeliveryRow {
    DeliveryRow {
        status: DeliveryStatus::Completed,
        blocking: false,
        ..row
    }
}

fn with_failure(row: DeliveryRow, failure: FailureRow) -> (DeliveryRow, Option<FailureRow>) {
    let row = DeliveryRow {
        error: Some(failure.error.clone()),
        error_kind: Some(failure.kind),
        fingerprint: Some(failure.fingerprint.clone()),
        ..row
    };
    (row, Some(failure))
}

/// A failed attempt, for the history.
fn failure_row(work: &Work, handler: &'static str, failure: Failure) -> FailureRow {
    FailureRow {
        record_id: work.record.id,
        part: work.part,
        handler,
        attempt: work.attempt.number,
        kind: failure.kind.name(),
        fingerprint: failure.fingerprint,
        error: failure.text,
    }
}
