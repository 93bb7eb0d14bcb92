//! How rows become what a person sees.

use std::time::Duration;

use super::{CappedCount, StatusCount};
use crate::{
    operations::{
        BlockedLane, Delivery, DeliveryStatus, ErrorCount, Failure, Inspected, Listed, RecordStatus,
    },
    store::{
        FetchedRecord,
        columns::{Cells, read_one},
    },
};

/// Columns: whether it is the status of a delivery, status, event, count.
pub(super) fn counted(row: &impl Cells) -> Result<StatusCount, sqlx::Error> {
    let status = row.text(1)?;
    let status = if row.flag(0)? {
        DeliveryStatus::stored(&status)?.into()
    } else {
        RecordStatus::stored(&status)?.into()
    };
    Ok(StatusCount {
        status,
        event: row.maybe_text(2)?,
        count: row.total(3)?,
    })
}

/// The columns of [`counted`], then how many block.
pub(super) fn capped(row: &impl Cells) -> Result<CappedCount, sqlx::Error> {
    Ok(CappedCount {
        counted: counted(row)?,
        blocking: row.total(4)?,
    })
}

/// Columns: fingerprint, handler, kind, error, count, lowest and highest record id.
pub(super) fn error_count(row: &impl Cells) -> Result<ErrorCount, sqlx::Error> {
    Ok(ErrorCount {
        fingerprint: row.text(0)?,
        handler: row.text(1)?,
        kind: row.maybe_text(2)?.unwrap_or_default(),
        error: row.maybe_text(3)?.unwrap_or_default(),
        count: row.total(4)?,
        oldest_record_id: row.number(5)?,
        newest_record_id: row.number(6)?,
    })
}

/// How many columns [`listed`] takes.
const LISTED: usize = 8;

/// Columns: id, event id, event, key, status, created, due, completed.
pub(super) fn listed(row: &impl Cells) -> Result<Listed, sqlx::Error> {
    Ok(Listed {
        record_id: row.number(0)?,
        event_id: row.uuid(1)?,
        event: row.text(2)?,
        key: row.text(3)?,
        status: RecordStatus::stored(&row.text(4)?)?,
        created_at: row.moment(5)?,
        due_at: row.maybe_moment(6)?,
        completed_at: row.maybe_moment(7)?,
        delivery: None,
    })
}

/// The columns of [`listed`], then those of [`delivery`].
pub(super) fn listed_delivery(row: &impl Cells) -> Result<Listed, sqlx::Error> {
    Ok(Listed {
        delivery: Some(delivery(row, LISTED)?),
        ..listed(row)?
    })
}

/// Columns: id, handler, status, blocking, attempt, failures, first failed, due, finished, kind,
/// fingerprint, error.
pub(super) fn delivery(row: &impl Cells, first: usize) -> Result<Delivery, sqlx::Error> {
    Ok(Delivery {
        id: row.number(first)?,
        handler: row.text(first + 1)?,
        status: DeliveryStatus::stored(&row.text(first + 2)?)?,
        blocking: row.flag(first + 3)?,
        attempt: row.count(first + 4)?,
        failure_count: row.count(first + 5)?,
        first_failed_at: row.maybe_moment(first + 6)?,
        due_at: row.maybe_moment(first + 7)?,
        finished_at: row.maybe_moment(first + 8)?,
        kind: row.maybe_text(first + 9)?,
        fingerprint: row.maybe_text(first + 10)?,
        error: row.maybe_text(first + 11)?,
    })
}

/// Columns: status, due, completed; then those of a record, which are found by their names.
pub(super) fn inspected(row: &impl Cells) -> Result<Inspected, sqlx::Error> {
    Ok(Inspected {
        record: read_one::<FetchedRecord, _>(row)?.record,
        status: RecordStatus::stored(&row.text(0)?)?,
        due_at: row.maybe_moment(1)?,
        completed_at: row.maybe_moment(2)?,
        deliveries: Vec::new(),
        failures: Vec::new(),
    })
}

/// Columns: handler, attempt, failed at, kind, fingerprint, error.
pub(super) fn failure(row: &impl Cells) -> Result<Failure, sqlx::Error> {
    Ok(Failure {
        handler: row.text(0)?,
        attempt: row.count(1)?,
        failed_at: row.moment(2)?,
        kind: row.text(3)?,
        fingerprint: row.text(4)?,
        error: row.text(5)?,
    })
}

/// Columns: key, handler, record id, status, attempt, error, microseconds until due, behind.
pub(super) fn blocked_lane(row: &impl Cells) -> Result<BlockedLane, sqlx::Error> {
    let due_in = row.optional_number(6)?;
    Ok(BlockedLane {
        key: row.text(0)?,
        handler: row.text(1)?,
        record_id: row.number(2)?,
        status: DeliveryStatus::stored(&row.text(3)?)?,
        attempt: row.count(4)?,
        error: row.maybe_text(5)?,
        due_in: due_in.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
        waiting: row.total(7)?,
    })
}
