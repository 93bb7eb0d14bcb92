//! The statements by which the dispatcher reads pending and due records.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Dialect, Statements,
    call::{Call, read},
    columns::FromCells,
    sql::Sql,
};
use crate::record::Record;

/// The pending records of a partition with ids above `after`, in the order of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Page {
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

/// The transactions that may still commit a record with a lower id than one that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenWriters {
    /// These transactions. A name stands for one transaction and is never used again.
    Named {
        names: Vec<String>,
        /// The highest id that had been drawn before the statement ran, if the database tells. Any
        /// other transaction commits higher ids only.
        drawn: Option<i64>,
    },
    /// The database does not tell. `clock` is the database's time.
    Unnamed { clock: Timestamp },
    /// None: ids are committed in their order.
    Serial,
}

/// Which pending records are read.
#[derive(Debug, Clone, Copy)]
pub struct PendingQuery<'a> {
    pub(crate) pages: &'a [Page],
    /// Records that are left out.
    pub(crate) in_memory: &'a [InMemory],
    /// At most this many records of one partition.
    pub(crate) per_partition: i64,
    /// At most this many records in all.
    pub(crate) limit: i64,
}

/// Which records and deliveries are due.
#[derive(Debug, Clone, Copy)]
pub struct DueQuery<'a> {
    /// The partitions that this process owns.
    pub(crate) parts: &'a [u16],
    /// The ids of the handlers that may run here now; only their deliveries count.
    pub(crate) handlers: &'a [&'a str],
    /// Microseconds that are added to the database's clock; zero outside of tests.
    pub(crate) offset: i64,
    pub(crate) limit: i64,
}

impl<'a> DueQuery<'a> {
    fn call(self, statement: &'a Sql) -> Call<'a> {
        statement
            .bind("partitions", self.parts)
            .bind("handlers", self.handlers)
            .bind("offset", self.offset)
            .bind("limit", self.limit)
    }

    /// What a statement finds. Without partitions, nothing.
    pub(super) async fn read<Db: Dialect, T: FromCells>(
        self,
        connection: &mut Db::Connection,
        statement: &Sql,
    ) -> Result<Vec<T>, sqlx::Error> {
        if self.parts.is_empty() {
            return Ok(Vec::new());
        }
        read::<Db, T>(connection, self.call(statement)).await
    }
}

/// The statements that read records. `partitions` are those that this process owns.
pub trait FetchSql: Dialect {
    /// The pending records of each partition in the order of their ids, from one snapshot.
    fn pending_records(
        connection: &mut Self::Connection,
        sql: &Statements,
        query: PendingQuery<'_>,
    ) -> impl Future<Output = Result<Vec<FetchedRecord>, sqlx::Error>> + Send {
        async move {
            let in_memory: Vec<i64> = query.in_memory.iter().map(|known| known.id).collect();
            let pending = sql
                .pending_records
                .bind("pages", query.pages)
                .bind("in_memory", &*in_memory)
                .bind("per_partition", query.per_partition)
                .bind("limit", query.limit);
            read::<Self, _>(connection, pending).await
        }
    }

    /// Scheduled records that are due, the most overdue first.
    fn due_records(
        connection: &mut Self::Connection,
        sql: &Statements,
        due: DueQuery<'_>,
    ) -> impl Future<Output = Result<Vec<FetchedRecord>, sqlx::Error>> + Send {
        async move { due.read::<Self, _>(connection, &sql.due_records).await }
    }

    /// Microseconds until the next scheduled record or delivery is due (negative: overdue).
    /// `None` if there is none. The limit does not matter.
    fn next_due(
        connection: &mut Self::Connection,
        sql: &Statements,
        due: DueQuery<'_>,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send {
        async move {
            let next = due.read::<Self, Option<i64>>(connection, &sql.next_due);
            Ok(next.await?.pop().flatten())
        }
    }

    /// Which other transactions are writing records now.
    fn open_writers(
        connection: &mut Self::Connection,
        sql: &Statements,
    ) -> impl Future<Output = Result<OpenWriters, sqlx::Error>> + Send;

    /// The names of events with unhandled records.
    fn unhandled_events(
        connection: &mut Self::Connection,
        sql: &Statements,
        partitions: &[u16],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send {
        async move {
            let events = sql.unhandled_events.bind("partitions", partitions);
            read::<Self, _>(connection, events).await
        }
    }
}
