//! The tables, and every statement on them. SQL stands in the driver files only; they mirror each
//! other, function by function.

mod connection;
mod delivery;
mod dialect;
mod fetch;
mod lease;
mod migrate;
#[cfg(feature = "mysql")]
mod mysql;
mod names;
mod operator;
#[cfg(feature = "postgres")]
mod postgres;
mod settle;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
#[cfg(test)]
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod tests;
mod transaction;
mod watch;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Pool, SqlSafeStr as _, SqlStr};

use crate::{outbox::Result, record::Record};
pub(crate) use connection::KeptConnection;
pub(crate) use delivery::{DeliverySql, DueDeliveryName, FetchedDelivery, LaneName, RunnableOrder};
pub(crate) use dialect::Dialect;
pub(crate) use fetch::{FetchSql, FetchedRecord, InMemory, OpenWriters, Page};
#[cfg(test)]
pub(crate) use lease::LeaseRow;
pub(crate) use lease::{ClusterView, ClusterViewRow, Fence, Instance, Lease, LeaseSql};
pub(crate) use migrate::Migration;
pub(crate) use migrate::printed;
pub(crate) use names::TableNames;
pub(crate) use operator::{
    CappedCount, CommandClaim, CommandKey, ListQuery, OPEN, Operator, Prunable, Retained,
    SAMPLE_END, SampleExtent, StatusCount, StatusSample, Table,
};
pub(crate) use settle::{Batch, DeliveryRow, FailureRow, SettleSql};
pub(crate) use transaction::{NotCommitted, TransactSql};
pub(crate) use watch::{LostSession, Notification, PollResult, SessionKey, WatchSql};

/// A database that can hold the outbox: `sqlx::Sqlite`, `sqlx::Postgres` or `sqlx::MySql`, each
/// with the feature of the same name.
#[diagnostic::on_unimplemented(
    message = "the outbox cannot be stored in `{Self}`",
    note = "use a pool of `sqlx::Sqlite`, `sqlx::Postgres` or `sqlx::MySql`, and the feature `sqlite`, `postgres` or `mysql` of `outbox`"
)]
pub trait Database: sqlx::Database + Driver {}

/// What each driver does. Sealed: users choose a database, they do not write one.
pub trait Driver:
    SchemaSql
    + PublishSql
    + LeaseSql
    + FetchSql
    + DeliverySql
    + SettleSql
    + Dialect
    + WatchSql
    + TransactSql
{
}

/// The statements that create the tables.
pub trait SchemaSql: sqlx::Database {
    /// Every step from nothing to the newest schema, in order.
    #[doc(hidden)]
    fn migrations(names: &TableNames) -> Vec<Migration>;

    /// Applies the steps that are missing, one process at a time. The version that was found.
    #[doc(hidden)]
    fn migrate(pool: &Pool<Self>, names: &TableNames) -> impl Future<Output = Result<i64>> + Send;
}

/// The statements of publishing.
pub trait PublishSql: sqlx::Database {
    /// The statements of publishing, with the names of the tables in them.
    #[doc(hidden)]
    fn inserts(names: &TableNames) -> PublishStatements;

    /// Writes one record. `None` if its dedup key is there already.
    #[doc(hidden)]
    fn insert(
        connection: &mut Self::Connection,
        inserts: &PublishStatements,
        record: &NewRecord,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;

    /// Writes all records in one statement, in their order. They are of one event, published at
    /// once: only their ids, keys, partitions and payloads differ. They have no dedup keys.
    #[doc(hidden)]
    fn insert_all(
        connection: &mut Self::Connection,
        inserts: &PublishStatements,
        records: &[NewRecord],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Corrects the time of publishing, in microseconds since 1970. Only the test kit does this,
    /// and that is on SQLite.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    fn stamp(
        _: &mut Self::Connection,
        _: &TableNames,
        _: uuid::Uuid,
        _: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }
}

/// A record that is about to be written.
#[derive(Debug)]
pub struct NewRecord {
    pub(crate) record: Record,
    pub(crate) partition: u16,
    pub(crate) due: Due,
    pub(crate) dedup_key: Option<String>,
}

impl NewRecord {
    /// As JSON text; none if there are none.
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
    /// That long after the moment at which the database writes it.
    In(Duration),
    At(Timestamp),
}

impl Due {
    /// On a database's clock that is this many microseconds behind.
    pub(crate) fn shifted(self, micros: i64) -> Self {
        match self {
            Self::In(delay) => {
                let shift = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
                Self::In(delay.saturating_add(shift))
            }
            due => due,
        }
    }

    /// Microseconds: after the database's present, and since 1970. At most one is there.
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

/// That long, in microseconds; at most 100 years, beyond which databases differ in what a date
/// can be.
pub(crate) fn micros(time: Duration) -> i64 {
    const LONGEST: i64 = 100 * 366 * 24 * 3600 * 1_000_000;
    i64::try_from(time.as_micros()).map_or(LONGEST, |micros| micros.min(LONGEST))
}

/// The statements of publishing, made once per outbox.
#[derive(Debug, Clone)]
pub struct PublishStatements {
    pub(crate) one: SqlStr,
    pub(crate) one_deduplicated: SqlStr,
    pub(crate) many: SqlStr,
}

/// Headers as they are stored. Whatever was put there by hand and is none counts as none.
fn headers(json: &str) -> BTreeMap<String, String> {
    serde_json::from_str(json).unwrap_or_default()
}

/// SQL that was put together from our own text and checked [`TableNames`].
pub(crate) fn trusted(sql: String) -> SqlStr {
    AssertSqlSafe(sql).into_sql_str()
}

/// What differs between records, as one JSON array of arrays, for databases without array
/// parameters: id, key, partition, payload.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
fn as_json(new: &[NewRecord]) -> Result<String, sqlx::Error> {
    let rows = new.iter().map(
        |NewRecord {
             record, partition, ..
         }| {
            let id = record.event_id.simple().to_string();
            (id, &record.key, partition, &record.payload)
        },
    );
    settle::json(&rows.collect::<Vec<_>>())
}
