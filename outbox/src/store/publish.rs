//! New records, and the statements that write them.

use std::time::Duration;

use jiff::Timestamp;

use super::StatementSql;
#[cfg(feature = "testing")]
use super::TableNames;
use crate::record::Record;

/// The statements of publishing.
pub trait PublishSql: StatementSql {
    /// Writes one record. `None` if a record with its dedup key exists.
    fn insert(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        record: &NewRecord,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;

    /// Writes all records in one statement, in their order. They differ in ids, keys, partitions and
    /// payloads only, and have no dedup keys.
    fn insert_all(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        records: &[NewRecord],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Changes the time of publication to these microseconds since 1970. Only the test kit calls it,
    /// on SQLite.
    #[cfg(feature = "testing")]
    fn stamp(
        _: &mut Self::Connection,
        _: &TableNames,
        _: uuid::Uuid,
        _: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }
}

/// Binds the parameters of `insert`, in the order that all drivers share. `$text` is how a driver
/// stores a text that is compared byte by byte.
macro_rules! bind_insert {
    ($query:expr, $new:expr, $text:expr) => {{
        let (due_in, due_at) = $new.due.micros();
        let record = &$new.record;
        $query
            .bind(record.event_id)
            .bind(&record.event)
            .bind(i64::from(record.version))
            .bind($text(&record.key))
            .bind($new.partition.cast_signed())
            .bind(&record.payload)
            .bind($new.headers())
            .bind(record.max_retries.map(i64::from))
            .bind($new.dedup_key.as_deref().map($text))
            .bind(due_in)
            .bind(due_at)
    }};
}
pub(super) use bind_insert;

/// Binds the parameters of `insert_all` that its records have in common.
macro_rules! bind_shared {
    ($query:expr, $new:expr) => {
        $query
            .bind(&$new.record.event)
            .bind(i64::from($new.record.version))
            .bind($new.headers())
            .bind($new.record.max_retries.map(i64::from))
    };
}
pub(super) use bind_shared;

/// A record that is about to be written.
#[derive(Debug)]
pub struct NewRecord {
    pub(crate) record: Record,
    pub(crate) partition: u16,
    pub(crate) due: Due,
    pub(crate) dedup_key: Option<String>,
}

impl NewRecord {
    /// The headers as JSON text. `None` if there are none.
    pub(crate) fn headers(&self) -> Option<String> {
        let headers = &self.record.headers;
        (!headers.is_empty())
            .then(|| serde_json::to_string(headers).ok())
            .flatten()
    }
}

/// When a record is to be handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    /// This long after the database writes the record.
    In(Duration),
    At(Timestamp),
}

impl Due {
    /// The same time on a database's clock that is this many microseconds behind.
    pub(crate) fn shifted(self, micros: i64) -> Self {
        match self {
            Self::In(delay) => {
                let shift = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
                Self::In(delay.saturating_add(shift))
            }
            due => due,
        }
    }

    /// Microseconds from the database's present, and microseconds since 1970. At most one is set.
    pub(crate) fn micros(self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Now => (None, None),
            Self::In(delay) => (Some(micros(delay)), None),
            Self::At(at) => {
                let latest = 253_402_300_799_000_000; // the end of the year 9999
                (None, Some(at.as_microsecond().clamp(0, latest)))
            }
        }
    }
}

/// A duration in microseconds; at most 100 years, because databases differ in their latest date.
pub(crate) fn micros(time: Duration) -> i64 {
    const LONGEST: i64 = 100 * 366 * 24 * 3600 * 1_000_000;
    i64::try_from(time.as_micros()).map_or(LONGEST, |micros| micros.min(LONGEST))
}

/// The values in which records differ (id, key, partition, payload) as one JSON array of arrays, for
/// databases without array parameters.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(super) fn as_json(new: &[NewRecord]) -> Result<String, sqlx::Error> {
    let rows = new.iter().map(
        |NewRecord {
             record, partition, ..
         }| {
            let id = record.event_id.simple().to_string();
            (id, &record.key, partition, &record.payload)
        },
    );
    super::settle::json(&rows.collect::<Vec<_>>())
}
