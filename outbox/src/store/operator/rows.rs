//! How rows become what a person sees.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use sqlx::{ColumnIndex, Decode, Row, Type};
use uuid::Uuid;

use super::{CappedCount, StatusCount};
use crate::{
    operations::{
        BlockedLane, Delivery, DeliveryStatus, ErrorCount, Failure, Inspected, Listed, RecordStatus,
    },
    record::Record,
};

/// The columns of a row, by their place. Times are microseconds since 1970.
pub trait Columns {
    fn int(&self, at: usize) -> Result<i64, sqlx::Error>;
    fn maybe_int(&self, at: usize) -> Result<Option<i64>, sqlx::Error>;
    fn flag(&self, at: usize) -> Result<bool, sqlx::Error>;
    fn text(&self, at: usize) -> Result<String, sqlx::Error>;
    fn maybe_text(&self, at: usize) -> Result<Option<String>, sqlx::Error>;
    fn uuid(&self, at: usize) -> Result<Uuid, sqlx::Error>;
    fn partition(&self, at: usize) -> Result<u16, sqlx::Error>;

    fn number(&self, at: usize) -> Result<u32, sqlx::Error> {
        Ok(u32::try_from(self.int(at)?).unwrap_or(u32::MAX))
    }

    fn count(&self, at: usize) -> Result<u64, sqlx::Error> {
        Ok(u64::try_from(self.int(at)?).unwrap_or(0))
    }

    fn moment(&self, at: usize) -> Result<Timestamp, sqlx::Error> {
        Ok(moment(self.int(at)?))
    }

    fn maybe_moment(&self, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.maybe_int(at)?.map(moment))
    }
}

impl<R: Row> Columns for R
where
    usize: ColumnIndex<R>,
    i16: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    i64: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    bool: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    String: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    Uuid: for<'r> Decode<'r, R::Database> + Type<R::Database>,
{
    fn int(&self, at: usize) -> Result<i64, sqlx::Error> {
        self.try_get(at)
    }

    fn maybe_int(&self, at: usize) -> Result<Option<i64>, sqlx::Error> {
        self.try_get(at)
    }

    fn flag(&self, at: usize) -> Result<bool, sqlx::Error> {
        self.try_get(at)
    }

    fn text(&self, at: usize) -> Result<String, sqlx::Error> {
        self.try_get(at)
    }

    fn maybe_text(&self, at: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get(at)
    }

    fn uuid(&self, at: usize) -> Result<Uuid, sqlx::Error> {
        self.try_get(at)
    }

    fn partition(&self, at: usize) -> Result<u16, sqlx::Error> {
        Ok(self.try_get::<i16, _>(at)?.cast_unsigned())
    }
}

/// Times that a timestamp cannot hold become the nearest one that it can.
fn moment(micros: i64) -> Timestamp {
    let end = if micros < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_microsecond(micros).unwrap_or(end)
}

/// Columns: whether it is the status of a delivery, status, event, count.
pub(super) fn counted(row: &impl Columns) -> Result<StatusCount, sqlx::Error> {
    let status = row.text(1)?;
    let status = if row.flag(0)? {
        DeliveryStatus::stored(&status)?.into()
    } else {
        RecordStatus::stored(&status)?.into()
    };
    Ok(StatusCount {
        status,
        event: row.maybe_text(2)?,
        count: row.count(3)?,
    })
}

/// The columns of [`counted`], then how many block.
pub(super) fn capped(row: &impl Columns) -> Result<CappedCount, sqlx::Error> {
    Ok(CappedCount {
        counted: counted(row)?,
        blocking: row.count(4)?,
    })
}

/// Columns: fingerprint, handler, kind, error, count, lowest and highest record id.
pub(super) fn error_count(row: &impl Columns) -> Result<ErrorCount, sqlx::Error> {
    Ok(ErrorCount {
        fingerprint: row.text(0)?,
        handler: row.text(1)?,
        kind: row.maybe_text(2)?.unwrap_or_default(),
        error: row.maybe_text(3)?.unwrap_or_default(),
        count: row.count(4)?,
        oldest_record_id: row.int(5)?,
        newest_record_id: row.int(6)?,
    })
}

/// How many columns [`listed`] takes.
const LISTED: usize = 8;

/// Columns: id, event id, event, key, status, created, due, completed.
pub(super) fn listed(row: &impl Columns) -> Result<Listed, sqlx::Error> {
    Ok(Listed {
        record_id: row.int(0)?,
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
pub(super) fn listed_delivery(row: &impl Columns) -> Result<Listed, sqlx::Error> {
    Ok(Listed {
        delivery: Some(delivery(row, LISTED)?),
        ..listed(row)?
    })
}

/// Columns: id, handler, status, blocking, attempt, failures, first failed, due, finished, kind,
/// fingerprint, error.
pub(super) fn delivery(row: &impl Columns, first: usize) -> Result<Delivery, sqlx::Error> {
    Ok(Delivery {
        id: row.int(first)?,
        handler: row.text(first + 1)?,
        status: DeliveryStatus::stored(&row.text(first + 2)?)?,
        blocking: row.flag(first + 3)?,
        attempt: row.number(first + 4)?,
        failure_count: row.number(first + 5)?,
        first_failed_at: row.maybe_moment(first + 6)?,
        due_at: row.maybe_moment(first + 7)?,
        finished_at: row.maybe_moment(first + 8)?,
        kind: row.maybe_text(first + 9)?,
        fingerprint: row.maybe_text(first + 10)?,
        error: row.maybe_text(first + 11)?,
    })
}

/// The columns of [`listed`], then: version, payload, headers, retries.
pub(super) fn inspected(row: &impl Columns) -> Result<Inspected, sqlx::Error> {
    let listed = listed(row)?;
    let headers = row.maybe_text(LISTED + 2)?;
    let max_retries = row.maybe_int(LISTED + 3)?;
    Ok(Inspected {
        record: Record {
            id: listed.record_id,
            event_id: listed.event_id,
            event: listed.event,
            version: row.number(LISTED)?,
            key: listed.key,
            payload: row.text(LISTED + 1)?,
            headers: headers.map_or_else(BTreeMap::new, |json| crate::store::headers(&json)),
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
pub(super) fn failure(row: &impl Columns) -> Result<Failure, sqlx::Error> {
    Ok(Failure {
        handler: row.text(0)?,
        attempt: row.number(1)?,
        failed_at: row.moment(2)?,
        kind: row.text(3)?,
        fingerprint: row.text(4)?,
        error: row.text(5)?,
    })
}

/// Columns: key, handler, record id, status, attempt, error, microseconds until due, behind.
pub(super) fn blocked_lane(row: &impl Columns) -> Result<BlockedLane, sqlx::Error> {
    let due_in = row.maybe_int(6)?;
    Ok(BlockedLane {
        key: row.text(0)?,
        handler: row.text(1)?,
        record_id: row.int(2)?,
        status: DeliveryStatus::stored(&row.text(3)?)?,
        attempt: row.number(4)?,
        error: row.maybe_text(5)?,
        due_in: due_in.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
        waiting: row.count(7)?,
    })
}
