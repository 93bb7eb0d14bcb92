//! Decodes rows into the types of `operations`.

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

/// Columns: is it the status of a delivery, status, event, count.
pub(super) fn counted(row: &impl Cells) -> Result<StatusCount, sqlx::Error> {
    let status = row.text(1)?;
    let status = if row.flag(0)? {
        DeliveryStatus::stored(&status)?.into()
    } else {
        RecordStatus::stored(&status)?.into()
    };
    Ok(StatusCount {
        status,
        event: row.optional_string(2)?,
        count: row.total(3)?,
        newest_failed_at: None,
    })
}

/// The columns of [`counted`], then the newest time of a failure.
pub(super) fn counted_of_event(row: &impl Cells) -> Result<StatusCount, sqlx::Error> {
    Ok(StatusCount {
        newest_failed_at: row.optional_time_from_micros(4)?,
        ..counted(row)?
    })
}

/// The columns of [`counted`], then the number of blocking deliveries.
pub(super) fn capped(row: &impl Cells) -> Result<CappedCount, sqlx::Error> {
    Ok(CappedCount {
        counted: counted(row)?,
        blocking: row.total(4)?,
    })
}

/// Columns: fingerprint, handler, kind, error, count, lowest and highest record id, oldest and newest
/// time of a failure.
pub(super) fn error_count(row: &impl Cells) -> Result<ErrorCount, sqlx::Error> {
    Ok(ErrorCount {
        fingerprint: row.text(0)?,
        handler: row.text(1)?,
        kind: row.optional_string(2)?.unwrap_or_default(),
        error: row.optional_string(3)?.unwrap_or_default(),
        count: row.total(4)?,
        oldest_record_id: row.number(5)?,
        newest_record_id: row.number(6)?,
        oldest_failed_at: row.optional_time_from_micros(7)?,
        newest_failed_at: row.optional_time_from_micros(8)?,
    })
}

/// The number of columns that [`listed`] reads.
const LISTED_COLUMNS: usize = 8;

/// Columns: id, event id, event, key, status, created, due, completed.
pub(super) fn listed(row: &impl Cells) -> Result<Listed, sqlx::Error> {
    Ok(Listed {
        record_id: row.number(0)?,
        event_id: row.uuid(1)?,
        event: row.text(2)?,
        key: row.text(3)?,
        status: RecordStatus::stored(&row.text(4)?)?,
        created_at: row.time_from_micros(5)?,
        due_at: row.optional_time_from_micros(6)?,
        completed_at: row.optional_time_from_micros(7)?,
        delivery: None,
    })
}

/// The columns of [`listed`], then those of [`delivery`].
pub(super) fn listed_delivery(row: &impl Cells) -> Result<Listed, sqlx::Error> {
    Ok(Listed {
        delivery: Some(delivery(row, LISTED_COLUMNS)?),
        ..listed(row)?
    })
}

/// Columns: id, handler, status, blocking, attempt, failures, first failed, failed, due, finished, kind,
/// fingerprint, error.
pub(super) fn delivery(row: &impl Cells, first: usize) -> Result<Delivery, sqlx::Error> {
    Ok(Delivery {
        id: row.number(first)?,
        handler: row.text(first + 1)?,
        status: DeliveryStatus::stored(&row.text(first + 2)?)?,
        blocking: row.flag(first + 3)?,
        attempt: row.count(first + 4)?,
        failure_count: row.count(first + 5)?,
        first_failed_at: row.optional_time_from_micros(first + 6)?,
        failed_at: row.optional_time_from_micros(first + 7)?,
        due_at: row.optional_time_from_micros(first + 8)?,
        finished_at: row.optional_time_from_micros(first + 9)?,
        kind: row.optional_string(first + 10)?,
        fingerprint: row.optional_string(first + 11)?,
        error: row.optional_string(first + 12)?,
    })
}

/// Columns: status, due, completed, dedup key; then the columns of a record, which are looked up by name.
pub(super) fn inspected(row: &impl Cells) -> Result<Inspected, sqlx::Error> {
    Ok(Inspected {
        record: read_one::<FetchedRecord, _>(row)?.record,
        status: RecordStatus::stored(&row.text(0)?)?,
        due_at: row.optional_time_from_micros(1)?,
        completed_at: row.optional_time_from_micros(2)?,
        dedup_key: row.optional_string(3)?,
        deliveries: Vec::new(),
        failures: Vec::new(),
    })
}

/// Columns: handler, attempt, failed at, kind, fingerprint, error.
pub(super) fn failure(row: &impl Cells) -> Result<Failure, sqlx::Error> {
    Ok(Failure {
        handler: row.text(0)?,
        attempt: row.count(1)?,
        failed_at: row.time_from_micros(2)?,
        kind: row.text(3)?,
        fingerprint: row.text(4)?,
        error: row.text(5)?,
    })
}

/// Columns: key, handler, record id, status, attempt, error, microseconds until due, deliveries behind it.
pub(super) fn blocked_lane(row: &impl Cells) -> Result<BlockedLane, sqlx::Error> {
    let due_in = row.optional_number(6)?;
    Ok(BlockedLane {
        key: row.text(0)?,
        handler: row.text(1)?,
        record_id: row.number(2)?,
        status: DeliveryStatus::stored(&row.text(3)?)?,
        attempt: row.count(4)?,
        error: row.optional_string(5)?,
        due_in: due_in.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
        waiting: row.total(7)?,
    })
}
