//! What a person on call reads, and how rows become what they see.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::{ColumnIndex, Decode, Row, Type};
use uuid::Uuid;

use super::TableNames;
use crate::{
    operations::{
        BlockedLane, Delivery, DeliveryStatus, ErrorCount, Failure, Inspected, Listed,
        RecordStatus, Status,
    },
    record::Record,
};

/// A [`Filter`](crate::operations::Filter) with the part of its result that is wanted. Ids are
/// those of deliveries where deliveries are listed, else those of records.
#[derive(Debug, Clone, Copy)]
pub struct ListQuery<'a> {
    pub(crate) event: Option<&'a str>,
    pub(crate) handler: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) fingerprint: Option<&'a str>,
    /// In microseconds.
    pub(crate) older_than: Option<i64>,
    /// The highest ids first, and only those below `after`; else the lowest, above it.
    pub(crate) newest_first: bool,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

impl ListQuery<'_> {
    /// How an id is compared with `after`, and what it is ordered by.
    pub(crate) fn order(&self) -> (&'static str, &'static str) {
        if self.newest_first {
            ("<", "desc")
        } else {
            (">", "asc")
        }
    }
}

/// How many there are of one status, of one event where events are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCount {
    pub(crate) status: Status,
    pub(crate) event: Option<String>,
    pub(crate) count: u64,
}

/// The statements of reports. Nothing in them looks at payloads but `inspect`.
pub trait ReportSql: sqlx::Database {
    /// How many records and unfinished deliveries of each status.
    #[doc(hidden)]
    fn counts(
        connection: &mut Self::Connection,
        names: &TableNames,
    ) -> impl Future<Output = Result<Vec<StatusCount>, sqlx::Error>> + Send;

    /// How many unfinished records (`split` ones are their deliveries) and deliveries of each
    /// status and event.
    #[doc(hidden)]
    fn counts_by_event(
        connection: &mut Self::Connection,
        names: &TableNames,
    ) -> impl Future<Output = Result<Vec<StatusCount>, sqlx::Error>> + Send;

    /// Failed deliveries by fingerprint and handler, the most frequent first.
    #[doc(hidden)]
    fn counts_by_error(
        connection: &mut Self::Connection,
        names: &TableNames,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<ErrorCount>, sqlx::Error>> + Send;

    /// Microseconds since the oldest pending record was published, and the lowest id of one.
    #[doc(hidden)]
    fn oldest_pending(
        connection: &mut Self::Connection,
        names: &TableNames,
        partitions: u16,
    ) -> impl Future<Output = Result<Option<(i64, i64)>, sqlx::Error>> + Send;

    /// Records with this status, or with any.
    #[doc(hidden)]
    fn list_records(
        connection: &mut Self::Connection,
        names: &TableNames,
        status: Option<RecordStatus>,
        query: ListQuery<'_>,
    ) -> impl Future<Output = Result<Vec<Listed>, sqlx::Error>> + Send;

    /// Deliveries with this status.
    #[doc(hidden)]
    fn list_deliveries(
        connection: &mut Self::Connection,
        names: &TableNames,
        status: DeliveryStatus,
        query: ListQuery<'_>,
    ) -> impl Future<Output = Result<Vec<Listed>, sqlx::Error>> + Send;

    /// How many records or deliveries, with this status or any, beyond `after`.
    #[doc(hidden)]
    fn count(
        connection: &mut Self::Connection,
        names: &TableNames,
        status: Option<Status>,
        query: ListQuery<'_>,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Everything of one record.
    #[doc(hidden)]
    fn inspect(
        connection: &mut Self::Connection,
        names: &TableNames,
        record_id: i64,
    ) -> impl Future<Output = Result<Option<Inspected>, sqlx::Error>> + Send;

    /// Lanes whose head is not about to run and has this status, or any, the longest first.
    #[doc(hidden)]
    fn blocked_lanes(
        connection: &mut Self::Connection,
        names: &TableNames,
        status: Option<DeliveryStatus>,
        query: ListQuery<'_>,
    ) -> impl Future<Output = Result<Vec<BlockedLane>, sqlx::Error>> + Send;
}

/// The columns of a row, by their place. Times are microseconds since 1970.
pub(super) trait Columns {
    fn int(&self, at: usize) -> Result<i64, sqlx::Error>;
    fn maybe_int(&self, at: usize) -> Result<Option<i64>, sqlx::Error>;
    fn flag(&self, at: usize) -> Result<bool, sqlx::Error>;
    fn text(&self, at: usize) -> Result<String, sqlx::Error>;
    fn maybe_text(&self, at: usize) -> Result<Option<String>, sqlx::Error>;
    fn uuid(&self, at: usize) -> Result<Uuid, sqlx::Error>;

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
}

/// Beyond what a timestamp can be is its end.
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
pub(super) const LISTED: usize = 8;

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
            headers: headers.map_or_else(BTreeMap::new, |json| super::headers(&json)),
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
        due_in: due_in
            .map(|micros| std::time::Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
        waiting: row.count(7)?,
    })
}
