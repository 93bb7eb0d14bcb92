//! What the dispatcher reads of records: those that are pending, those that have become due.

use jiff::Timestamp;
use serde::Serialize;

use super::{StatementSql, TableNames};
use crate::record::Record;

/// A partition's pending records with ids above `after`, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Page {
    pub(crate) part: u16,
    pub(crate) after: i64,
}

/// A record that is in memory already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InMemory {
    pub(crate) part: u16,
    pub(crate) id: i64,
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedRecord {
    pub(crate) part: u16,
    pub(crate) record: Record,
}

/// Which transactions may still bring a record with a lower id than one that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenWriters {
    /// These. Each name stands for one transaction and is never used again.
    Named {
        names: Vec<String>,
        /// The highest id that had been drawn before they were asked for, if the database tells:
        /// whoever is not among them brings higher ones only.
        drawn: Option<i64>,
    },
    /// The database does not say. What its clock shows.
    Unnamed { clock: Timestamp },
    /// None ever: ids are committed in their order.
    Serial,
}

/// Which pending records are read.
#[derive(Debug, Clone, Copy)]
pub struct PendingQuery<'a> {
    pub(crate) pages: &'a [Page],
    /// Records that are left out.
    pub(crate) in_memory: &'a [InMemory],
    /// The most that are read of one partition.
    pub(crate) per_partition: i64,
    /// The most that are read of all.
    pub(crate) limit: i64,
}

/// Which records and deliveries are due.
#[derive(Debug, Clone, Copy)]
pub struct DueQuery<'a> {
    /// The partitions that this process owns.
    pub(crate) parts: &'a [u16],
    /// The ids of the handlers that may run here now; only their deliveries count.
    pub(crate) handlers: &'a [&'a str],
    /// Microseconds that are added to the database's clock: zero outside of tests.
    pub(crate) offset: i64,
    pub(crate) limit: i64,
}

/// The statements that read records. `parts` are the partitions that this process owns.
pub trait FetchSql: StatementSql {
    /// Pending records of each partition in the order of their ids, as one moment saw them.
    fn pending_records(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        query: PendingQuery<'_>,
    ) -> impl Future<Output = Result<Vec<FetchedRecord>, sqlx::Error>> + Send;

    /// Scheduled records whose time has come, the most overdue first.
    fn due_records(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        due: DueQuery<'_>,
    ) -> impl Future<Output = Result<Vec<FetchedRecord>, sqlx::Error>> + Send;

    /// Microseconds until the next scheduled record or delivery is due (negative: overdue).
    /// `None` if there is none. The limit does not matter.
    fn next_due(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        due: DueQuery<'_>,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;

    /// Which other transactions are writing records now.
    fn open_writers(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
    ) -> impl Future<Output = Result<OpenWriters, sqlx::Error>> + Send;

    /// The names of the events that were put aside because nothing handled them.
    fn unhandled_events(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        parts: &[u16],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;

    /// The handlers that were paused.
    fn paused_handlers(
        connection: &mut Self::Connection,
        names: &TableNames,
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;
}
