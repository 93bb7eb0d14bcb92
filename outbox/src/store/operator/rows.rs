//! How rows become what a person sees.

use std::{collections::BTreeMap, time::Duration};

use super::{CappedCount, StatusCount};
use crate::{
    operations::{
        BlockedLane, Delivery, DeliveryStatus, ErrorCount, Failure, Inspected, Listed, RecordStatus,
    },
    record::Record,
    store::columns::{Cells, headers},
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

/// The columns of [`listed`], then: version, payload, headers, retries.
pub(super) fn inspected(row: &impl Cells) -> Result<Inspected, sqlx::Error> {
    let listed = listed(row)?;
    let json = row.optional_text(LISTED + 2)?;
    let max_retries = row.optional_number(LISTED + 3)?;
    Ok(Inspected {
        record: Record {
            id: listed.record_id,
            event_id: listed.event_id,
            event: listed.event,
            version: row.count(LISTED)?,
            key: listed.key,
            payload: row.text(LISTED + 1)?,
            headers: json.map_or_else(BTreeMap::new, headers),
            created_at: listed.created_at,
            max_retries: max_retries.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        },
        status: listed.status,
        due_at: listed.due_at,
        completed_at: listed.completed_at,
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
