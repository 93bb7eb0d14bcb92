//! The statements with which the fetcher reads pending and due records.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Dialect, Statements,
    call::{Call, read},
    columns::FromCells,
    sql::Sql,
};
use crate::record::{Partition, Record};

/// The pending records of a partition with ids above `after`, in the order of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Page {
    #[serde(rename = "part")]
    pub(crate) partition: Partition,
    pub(crate) after: i64,
}

/// A record that is in memory already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InMemory {
    pub(crate) partition: Partition,
    pub(crate) id: i64,
}

/// A record as the fetcher read it.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedRecord {
    pub(crate) partition: Partition,
    pub(crate) record: Record,
}

/// The transactions that may still commit a record with a lower id than a record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenWriters {
    /// The database lists them.
    Named {
        /// The name of each transaction. A name is never used again.
        transactions: Vec<String>,
        /// The highest id that the sequence had given out before the statement ran, if the role may
        /// read the sequence. All other transactions commit higher ids.
        highest_drawn: Option<i64>,
    },
    /// The database cannot list them.
    Unnamed { database_time: Timestamp },
    /// There are none: ids are committed in their order.
    Serial,
}

/// Which pending records to read.
#[derive(Debug, Clone, Copy)]
pub struct PendingQuery<'a> {
    pub(crate) pages: &'a [Page],
    /// Records to skip.
    pub(crate) in_memory: &'a [InMemory],
    /// The largest number of records of one partition.
    pub(crate) per_partition: i64,
    /// The largest number of records of all partitions.
    pub(crate) limit: i64,
}

/// Where to look for due records and deliveries.
#[derive(Debug, Clone, Copy)]
pub struct DueQuery<'a> {
    /// The partitions that this process owns.
    pub(crate) partitions: &'a [Partition],
    /// The ids of the handlers that may run in this process now. Other deliveries are skipped.
    pub(crate) handlers: &'a [&'a str],
    /// Microseconds that are added to the database's clock; zero outside of tests.
    pub(crate) offset: i64,
    pub(crate) limit: i64,
}

impl<'a> DueQuery<'a> {
    fn call(self, statement: &'a Sql) -> Call<'a> {
        statement
            .bind("partitions", self.partitions)
            .bind("handlers", self.handlers)
            .bind("offset", self.offset)
            .bind("limit", self.limit)
    }

    /// Reads the rows of a statement. Without partitions, returns none.
    pub(super) async fn read<Db: Dialect, T: FromCells>(
        self,
        connection: &mut Db::Connection,
        statement: &Sql,
    ) -> Result<Vec<T>, sqlx::Error> {
        if self.partitions.is_empty() {
            return Ok(Vec::new());
        }
        read::<Db, T>(connection, self.call(statement)).await
    }
}

/// The statements that read records. `partitions` are the partitions of this process.
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
    /// `None` if there is none. Ignores `due.limit`.
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

    /// The other transactions that are writing records now.
    fn open_writers(
        connection: &mut Self::Connection,
        sql: &Statements,
    ) -> impl Future<Output = Result<OpenWriters, sqlx::Error>> + Send;

    /// The names of events with unhandled records.
    fn unhandled_events(
        connection: &mut Self::Connection,
        sql: &Statements,
        partitions: &[Partition],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send {
        async move {
            let events = sql.unhandled_events.bind("partitions", partitions);
            read::<Self, _>(connection, events).await
        }
    }
}
