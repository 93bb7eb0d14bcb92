//! The rows of a delivery and of its failure after an attempt.

use super::{AttemptEnd, Work};
use crate::{
    record::{Attempt, DeliveryStatus, Partition, Record},
    store::{DeliveryRow, FailureRow, as_micros},
};

/// A delivery that its handler completed.
pub(crate) fn completed_row(work: &Work, handler: &'static str) -> DeliveryRow {
    DeliveryRow {
        status: DeliveryStatus::Completed,
        blocking: false,
        ..waiting_row(work.partition, &work.record, handler, work.attempt)
    }
}

/// The row of a delivery after an attempt, and its failure for the history if it failed.
/// `holds_lane`: later records of the lane wait while it is retried. `skips_failed`: they do not
/// wait once it failed permanently.
pub(super) fn rows_after(
    work: &Work,
    handler: &'static str,
    end: AttemptEnd,
    holds_lane: bool,
    skips_failed: bool,
) -> (DeliveryRow, Option<FailureRow>) {
    let mut row = waiting_row(work.partition, &work.record, handler, work.attempt);
    if end.is_completed() {
        (row.status, row.blocking) = (DeliveryStatus::Completed, false);
    }
    let failure = match end {
        AttemptEnd::Handled | AttemptEnd::Skipped | AttemptEnd::NoHandler => return (row, None),
        // The failure stays in the history although the fallback completed the record.
        AttemptEnd::FellBack(failure) => failure,
        AttemptEnd::Retry {
            delay,
            next,
            failure,
        } => {
            (row.status, row.blocking) = (DeliveryStatus::Retrying, holds_lane);
            row.attempt = next.number;
            row.failure_count = next.failure_count;
            row.first_failed_at = next.first_failed_at.map(|at| at.as_microsecond());
            row.due_in = Some(as_micros(delay));
            failure
        }
        AttemptEnd::Failed { failure, .. } => {
            row.status = DeliveryStatus::Failed;
            row.blocking = holds_lane && !skips_failed;
            failure
        }
    };
    if row.status != DeliveryStatus::Completed {
        row.error = Some(failure.text.clone());
        row.error_kind = Some(failure.kind.name());
        row.fingerprint = Some(failure.fingerprint.clone());
    }
    let failure = FailureRow {
        record_id: work.record.id,
        partition: work.partition,
        handler,
        attempt: work.attempt.number,
        kind: failure.kind.name(),
        fingerprint: failure.fingerprint,
        error: failure.text,
    };
    (row, Some(failure))
}

/// A delivery that waits until it is the first of its lane.
pub(super) fn waiting_row(
    partition: Partition,
    record: &Record,
    handler: &'static str,
    attempt: Attempt,
) -> DeliveryRow {
    DeliveryRow {
        record_id: record.id,
        partition,
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
