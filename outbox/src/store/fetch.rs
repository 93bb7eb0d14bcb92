//! What the dispatcher reads of records: those that are pending, those that have become due.

use jiff::Timestamp;
use serde::Serialize;

use super::TableNames;
use crate::record::Record;

/// A partition's pending records with ids above `after`, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Page {
    pub(crate) part: u16,
    pub(crate) after: i64,
}

/// A record that is in memory already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InMemory {
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

/// The statements that read. `parts` are the partitions that this process owns; `handlers` the
/// ids of those that may run here now. `offset` is added to the database's clock, in
/// microseconds: zero outside of tests.
pub trait FetchSql: sqlx::Database {
    /// Pending records of these pages without the `known` ones, at most `per_page` of each and
    /// `limit` in all; of each partition in the order of their ids, as one moment saw them.
    #[doc(hidden)]
    fn pending_records(
        connection: &mut Self::Connection,
        names: &TableNames,
        pages: &[Page],
        known: &[InMemory],
        per_page: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<FetchedRecord>, sqlx::Error>> + Send;

    /// Scheduled records whose time has come, the most overdue first.
    #[doc(hidden)]
    fn due_records(
        connection: &mut Self::Connection,
        names: &TableNames,
        parts: &[u16],
        offset: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<FetchedRecord>, sqlx::Error>> + Send;

    /// Microseconds until the next scheduled record or delivery is due (negative: overdue).
    /// `None` if there is none.
    #[doc(hidden)]
    fn next_due(
        connection: &mut Self::Connection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;

    /// Which other transactions are writing records now.
    #[doc(hidden)]
    fn open_writers(
        connection: &mut Self::Connection,
        names: &TableNames,
    ) -> impl Future<Output = Result<OpenWriters, sqlx::Error>> + Send;

    /// The names of the events that were put aside because nothing handled them.
    #[doc(hidden)]
    fn unhandled_events(
        connection: &mut Self::Connection,
        names: &TableNames,
        parts: &[u16],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;

    /// The handlers that were paused.
    #[doc(hidden)]
    fn paused_handlers(
        connection: &mut Self::Connection,
        names: &TableNames,
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;
}
