//! New records, and the statements that write them.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use sqlx::{error::BoxDynError, query::Query};

#[cfg(feature = "testing")]
use super::TableNames;
use super::{
    Dialect, Statements,
    call::{Param, execute},
};
use crate::record::{Partition, Record};

/// The statements of publishing.
pub trait PublishSql: Dialect {
    /// Writes one record and returns its id. `None` if a record with its dedup key exists.
    fn insert(
        connection: &mut Self::Connection,
        sql: &Statements,
        record: &NewRecord,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send {
        let statement = match record.dedup_key {
            Some(_) => &sql.insert_deduplicated,
            None => &sql.insert,
        };
        let arguments = arguments::<Self>(record).map_err(sqlx::Error::Encode);
        async move {
            let query = sqlx::query_with(statement.text(), arguments?);
            Self::inserted_id(connection, query).await
        }
    }

    /// Runs an `insert`. Returns the id of the row, if it wrote one.
    fn inserted_id(
        connection: &mut Self::Connection,
        query: Query<'static, Self, Self::Arguments>,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;

    /// Writes all records in one statement, in their order. They differ in ids, keys, partitions and
    /// payloads only, and have no dedup keys.
    fn insert_all(
        connection: &mut Self::Connection,
        sql: &Statements,
        records: &[NewRecord],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let Some(each) = records.first() else {
                return Ok(());
            };
            let headers = each.headers();
            let insert = sql
                .insert_all
                .bind("records", records)
                .bind("event", &*each.record.event)
                .bind("version", i64::from(each.record.version))
                .bind("headers", headers.as_deref())
                .bind("max_retries", retries_as_number(&each.record));
            execute::<Self>(connection, insert).await.map(drop)
        }
    }

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

/// The parameters of `insert`, in the order in which the text of each database names them.
pub(super) const INSERT_PARAMETERS: [&str; 11] = [
    "event_id",
    "event",
    "version",
    "key",
    "part",
    "payload",
    "headers",
    "max_retries",
    "dedup_key",
    "due_in",
    "due_at",
];

/// The values of [`INSERT_PARAMETERS`]. They are not looked up by name, because publishing must be
/// fast.
fn arguments<Db: Dialect>(new: &NewRecord) -> Result<Db::Arguments, BoxDynError> {
    let (record, headers) = (&new.record, new.headers());
    let (due_in, due_at) = new.due.as_micros();
    let values: [Param<'_>; INSERT_PARAMETERS.len()] = [
        record.event_id.into(),
        (&*record.event).into(),
        i64::from(record.version).into(),
        Param::Key(Some(&record.key)),
        Param::Partition(new.partition),
        (&*record.payload).into(),
        headers.as_deref().into(),
        retries_as_number(record).into(),
        Param::Key(new.dedup_key.as_deref()),
        due_in.into(),
        due_at.into(),
    ];
    let mut arguments = Db::Arguments::default();
    for value in values {
        Db::add_argument(&mut arguments, value)?;
    }
    Ok(arguments)
}

/// The column `max_retries`: the number of the publisher, or below zero the number of its configuration,
/// which was pinned. One column, because the dispatcher reads it with each record.
pub(super) fn retries_as_number(record: &Record) -> Option<i64> {
    let pinned = record.pinned_max_retries.map(|n| -1 - i64::from(n));
    record.max_retries.map(i64::from).or(pinned)
}

/// The number of the publisher and the pinned number of a stored record. At most one is set.
pub(super) fn retries_from(number: Option<i64>) -> (Option<u32>, Option<u32>) {
    let count = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
    match number {
        Some(n @ 0..) => (Some(count(n)), None),
        Some(n) => (None, Some(count(-1 - n))),
        None => (None, None),
    }
}

/// A record that is about to be written.
#[derive(Debug)]
pub struct NewRecord {
    pub(crate) record: Record,
    pub(crate) partition: Partition,
    pub(crate) due: Due,
    pub(crate) dedup_key: Option<String>,
}

impl NewRecord {
    /// The headers as JSON text. `None` if there are none.
    pub(crate) fn headers(&self) -> Option<String> {
        headers_as_json(&self.record)
    }
}

/// The column `headers`.
pub(super) fn headers_as_json(record: &Record) -> Option<String> {
    let headers = &record.headers;
    (!headers.is_empty())
        .then(|| serde_json::to_string(headers).ok())
        .flatten()
}

/// The values in which records of one [`insert_all`](PublishSql::insert_all) differ.
impl Serialize for NewRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = &self.record;
        let id = record.event_id.simple();
        (id.to_string(), &record.key, self.partition, &record.payload).serialize(serializer)
    }
}

/// When a record is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    /// The delay after the database writes the record.
    In(Duration),
    At(Timestamp),
}

impl Due {
    /// The same time on a database's clock that is `micros` microseconds behind.
    pub(crate) fn shifted(self, micros: i64) -> Self {
        match self {
            Self::In(delay) => {
                let shift = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
                Self::In(delay.saturating_add(shift))
            }
            due => due,
        }
    }

    /// Microseconds from the database's current time, and microseconds since 1970. At most one is set.
    pub(crate) fn as_micros(self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Now => (None, None),
            Self::In(delay) => (Some(as_micros(delay)), None),
            Self::At(at) => {
                let latest = 253_402_300_799_000_000; // the end of the year 9999
                (None, Some(at.as_microsecond().clamp(0, latest)))
            }
        }
    }
}

/// A duration in microseconds, at most 100 years, because databases differ in their latest date.
pub(crate) fn as_micros(time: Duration) -> i64 {
    const LONGEST: i64 = 100 * 366 * 24 * 3600 * 1_000_000;
    i64::try_from(time.as_micros()).map_or(LONGEST, |micros| micros.min(LONGEST))
}
