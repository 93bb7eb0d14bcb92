//! The statements by which the dispatcher settles batches.

use std::{slice, time::Duration};

use serde::{Serialize, Serializer};

use super::{
    Fence, LeaseSql, Statements,
    call::{Call, begin, execute, read},
    sql::Sql,
};
use crate::record::DeliveryStatus;

/// Everything that one transaction of the writer writes.
#[derive(Debug, Default)]
pub struct Batch {
    /// Records that every handler completed.
    pub(crate) completed: Vec<i64>,
    /// Records that no handler of this process takes.
    pub(crate) unhandled: Vec<i64>,
    /// Records that get a delivery for each handler that has not finished. The rows are in
    /// `new_deliveries`, in the order of their lanes.
    pub(crate) split_records: Vec<i64>,
    pub(crate) new_deliveries: Vec<DeliveryRow>,
    /// Existing deliveries with their new values.
    pub(crate) changed_deliveries: Vec<DeliveryRow>,
    pub(crate) failures: Vec<FailureRow>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.completed.is_empty()
            && self.unhandled.is_empty()
            && self.split_records.is_empty()
            && self.changed_deliveries.is_empty()
    }

    /// The batch has completed records only: one statement writes it, without a transaction.
    pub(crate) fn has_only_completed(&self) -> bool {
        self.unhandled.is_empty()
            && self.split_records.is_empty()
            && self.changed_deliveries.is_empty()
    }

    /// The keys that have a blocking delivery once this batch is written, with their partitions.
    pub(crate) fn blocking(&self) -> impl Iterator<Item = (u16, &str)> {
        let rows = self.new_deliveries.iter().chain(&self.changed_deliveries);
        let blocking = rows.filter(|row| row.blocking);
        blocking.map(|row| (row.part, &*row.key))
    }

    /// The time until the first of its deliveries is due.
    pub(crate) fn first_due(&self) -> Option<Duration> {
        let rows = self.new_deliveries.iter().chain(&self.changed_deliveries);
        let first = rows.filter_map(|row| row.due_in).min()?;
        Some(Duration::from_micros(u64::try_from(first).unwrap_or(0)))
    }

    /// Moves every due time by the offset between the test's clock and the database's, in
    /// microseconds.
    pub(crate) fn shift(&mut self, micros: i64) {
        for row in self
            .new_deliveries
            .iter_mut()
            .chain(&mut self.changed_deliveries)
        {
            row.due_in = row.due_in.map(|due_in| due_in.saturating_add(micros));
        }
    }

    /// The new deliveries of these records, in their order.
    fn rows_of(&self, records: &[i64]) -> Vec<&DeliveryRow> {
        let rows = self.new_deliveries.iter();
        rows.filter(|row| records.contains(&row.record_id))
            .collect()
    }

    /// Whether a delivery has more failures than are kept.
    fn has_old_failures(&self) -> bool {
        let mut failures = self.failures.iter();
        failures.any(|row| row.attempt > MAX_FAILURES_KEPT)
    }

    /// The records of completed deliveries. A record is completed with its last open delivery.
    pub(crate) fn ended(&self) -> Vec<i64> {
        let ended = self
            .changed_deliveries
            .iter()
            .filter(|row| row.status == DeliveryStatus::Completed);
        let mut ids = in_order(ended.map(|row| row.record_id));
        ids.dedup();
        ids
    }
}

fn in_order(ids: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut ids: Vec<i64> = ids.into_iter().collect();
    ids.sort_unstable();
    ids
}

/// The new values of a delivery. All rows of a batch are sent as one JSON array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DeliveryRow {
    pub(crate) record_id: i64,
    pub(crate) part: u16,
    pub(crate) key: String,
    pub(crate) handler: &'static str,
    #[serde(serialize_with = "as_stored")]
    pub(crate) status: DeliveryStatus,
    pub(crate) blocking: bool,
    /// The number of the next attempt; of the last one if none follows.
    pub(crate) attempt: u32,
    pub(crate) failure_count: u32,
    /// Microseconds since 1970.
    pub(crate) first_failed_at: Option<i64>,
    /// Microseconds from the database's present, if the status is `retrying`.
    pub(crate) due_in: Option<i64>,
    /// The attempt in the row as it was read. If the row has another one, the change comes too late
    /// and is not made.
    pub(crate) expected_attempt: u32,
    pub(crate) error: Option<String>,
    pub(crate) error_kind: Option<&'static str>,
    pub(crate) fingerprint: Option<String>,
}

fn as_stored<S: Serializer>(status: &DeliveryStatus, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.as_str())
}

/// One failed attempt, for the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FailureRow {
    pub(crate) record_id: i64,
    pub(crate) part: u16,
    pub(crate) handler: &'static str,
    pub(crate) attempt: u32,
    pub(crate) kind: &'static str,
    pub(crate) fingerprint: String,
    pub(crate) error: String,
}

/// The delivery that a handler's own transaction completes.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryCompletion<'a> {
    pub(crate) row: &'a DeliveryRow,
    /// The delivery had a row when the handler started. Otherwise it may have got one since.
    pub(crate) stored: bool,
    /// A completed record is kept, not deleted.
    pub(crate) keep: bool,
}

/// A handler that has a new id.
#[derive(Debug, Clone, Copy)]
pub struct HandlerRename<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

/// How many failures of one delivery are kept. Older ones are deleted.
pub(crate) const MAX_FAILURES_KEPT: u32 = 50;

/// Serializes many rows as one JSON array.
pub(crate) fn json(rows: &(impl Serialize + ?Sized)) -> Result<String, sqlx::Error> {
    serde_json::to_string(rows).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// The statements that write. Each is conditional on the fence and on the row as it was read, so
/// that writing a batch again, or too late, changes nothing.
pub trait SettleSql: LeaseSql {
    /// Writes all of a batch, or nothing. `keep`: completed records are kept, not deleted.
    fn settle(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        batch: &Batch,
        keep: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let alone = if keep {
                &sql.complete_records_alone
            } else {
                &sql.delete_records_alone
            };
            if batch.has_only_completed() && alone.exists() {
                let complete = alone.fenced(fence).bind("ids", &*batch.completed);
                return execute::<Self>(connection, complete).await.map(drop);
            }
            let mut tx = begin::<Self>(connection, Self::BEGIN).await?;
            execute::<Self>(&mut tx, sql.relax_transaction.call()).await?;
            // An instance that takes these partitions over waits for the end of this transaction:
            // it must see all rows that block, or none of them.
            let ours = Self::lock_leases(&mut tx, sql, fence).await?;
            if ours.is_empty() {
                return tx.rollback().await;
            }
            let writer = Writer {
                sql,
                fence,
                ours: &ours,
                keep,
            };
            writer.complete::<Self>(&mut tx, &batch.completed).await?;
            writer
                .change_records::<Self>(&mut tx, &sql.put_aside, &batch.unhandled)
                .await?;
            writer.split::<Self>(&mut tx, batch).await?;
            writer
                .change::<Self>(&mut tx, &batch.changed_deliveries)
                .await?;
            writer.add_failures::<Self>(&mut tx, batch).await?;
            writer.finish::<Self>(&mut tx, batch.ended()).await?;
            tx.commit().await
        }
    }

    /// Marks the transaction that a handler gets.
    fn mark_transaction(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        let mark = sqlx::query("savepoint outbox_handler");
        async move { Self::execute_query(connection, mark).await.map(drop) }
    }

    /// Fails if this is no longer the marked transaction. Some databases end a transaction by
    /// themselves, for example after a deadlock; later statements of the handler are outside of it.
    fn check_mark(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        let release = sqlx::query("release savepoint outbox_handler");
        async move { Self::execute_query(connection, release).await.map(drop) }
    }

    /// Completes a record, or its delivery, inside a handler's own transaction. Whether this
    /// process still owned it and it was as it was read; if not, the transaction must not commit.
    fn complete_in_transaction(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        completion: DeliveryCompletion<'_>,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send {
        async move {
            let DeliveryCompletion { row, stored, keep } = completion;
            let mut ours = Vec::new();
            if Self::WORDS.locks_fence {
                ours = Self::lock_leases(connection, sql, fence).await?;
                if ours.is_empty() {
                    return Ok(false);
                }
            }
            let writer = Writer {
                sql,
                fence,
                ours: &ours,
                keep,
            };
            let ids = [row.record_id];
            if !stored && writer.complete::<Self>(connection, &ids).await? > 0 {
                return Ok(true);
            }
            let changed = writer.change::<Self>(connection, slice::from_ref(row));
            if changed.await? == 0 {
                return Ok(false);
            }
            writer.finish::<Self>(connection, ids.to_vec()).await?;
            Ok(true)
        }
    }

    /// Gives deliveries of a renamed handler its new id.
    fn rename_handler(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        rename: HandlerRename<'_>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let mut tx = begin::<Self>(connection, Self::BEGIN).await?;
            let ours = Self::lock_leases(&mut tx, sql, fence).await?;
            let call = sql.rename_handler.fenced(fence).bind("ours", &*ours);
            let call = call.bind("from", rename.from).bind("to", rename.to);
            execute::<Self>(&mut tx, call).await?;
            tx.commit().await
        }
    }

    /// Makes at most `limit` unhandled records of this event pending again, and returns how many.
    fn requeue_unhandled(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        event: &str,
        limit: i64,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send {
        async move {
            let mut tx = begin::<Self>(connection, Self::BEGIN).await?;
            let ours = Self::lock_leases(&mut tx, sql, fence).await?;
            let call = sql.requeue_unhandled.fenced(fence).bind("ours", &*ours);
            let call = call.bind("event", event).bind("limit", limit);
            let changed = execute::<Self>(&mut tx, call).await?;
            tx.commit().await?;
            Ok(changed)
        }
    }

    /// Sets up a kept connection. `settles`: the writer's connection. Behind a proxy that shares
    /// sessions, another program's transaction may meet these settings, so they must not harm it.
    fn configure(
        connection: &mut Self::Connection,
        settles: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// Makes the changes of a batch, or of one completion. Each does nothing without rows.
#[derive(Clone, Copy)]
struct Writer<'a> {
    sql: &'a Statements,
    fence: &'a Fence,
    /// The partitions whose leases are locked.
    ours: &'a [u16],
    /// Completed records are kept, not deleted.
    keep: bool,
}

impl Writer<'_> {
    fn call<'a>(&'a self, statement: &'a Sql) -> Call<'a> {
        statement.fenced(self.fence).bind("ours", self.ours)
    }

    /// Changes or deletes records that are as they were read. Returns how many.
    async fn change_records<Db: SettleSql>(
        &self,
        connection: &mut Db::Connection,
        statement: &Sql,
        ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        if ids.is_empty() {
            return Ok(0);
        }
        // In order, so that two batches do not wait for each other.
        let ids = in_order(ids.iter().copied());
        execute::<Db>(connection, self.call(statement).bind("ids", &*ids)).await
    }

    async fn complete<Db: SettleSql>(
        &self,
        connection: &mut Db::Connection,
        ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let statement = if self.keep {
            &self.sql.complete_records
        } else {
            &self.sql.delete_records
        };
        self.change_records::<Db>(connection, statement, ids).await
    }

    /// Adds delivery rows for the handlers that did not finish, if the record is as it was read.
    async fn split<Db: SettleSql>(
        &self,
        connection: &mut Db::Connection,
        batch: &Batch,
    ) -> Result<(), sqlx::Error> {
        if batch.split_records.is_empty() {
            return Ok(());
        }
        let ids = in_order(batch.split_records.iter().copied());
        let rows = json(&batch.new_deliveries)?;
        let split = self.call(&self.sql.split_records).bind("ids", &*ids);
        let split = split.bind("deliveries", &*rows);
        if !self.sql.add_deliveries.exists() {
            return execute::<Db>(connection, split).await.map(drop);
        }
        let split: Vec<i64> = read::<Db, _>(connection, split).await?;
        let rows = json(&batch.rows_of(&split))?;
        let add = self.sql.add_deliveries.bind("ids", &*split);
        let add = add.bind("deliveries", &*rows);
        execute::<Db>(connection, add).await.map(drop)
    }

    /// Returns how many deliveries were as they were read.
    async fn change<Db: SettleSql>(
        &self,
        connection: &mut Db::Connection,
        rows: &[DeliveryRow],
    ) -> Result<u64, sqlx::Error> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut rows: Vec<&DeliveryRow> = rows.iter().collect();
        rows.sort_by_key(|row| (row.record_id, row.handler));
        let (change, rows) = (self.call(&self.sql.change_deliveries), json(&rows)?);
        execute::<Db>(connection, change.bind("deliveries", &*rows)).await
    }

    async fn add_failures<Db: SettleSql>(
        &self,
        connection: &mut Db::Connection,
        batch: &Batch,
    ) -> Result<(), sqlx::Error> {
        if batch.failures.is_empty() {
            return Ok(());
        }
        let rows = json(&batch.failures)?;
        let add = self.call(&self.sql.add_failures).bind("failures", &*rows);
        execute::<Db>(connection, add).await?;
        if batch.has_old_failures() {
            let forget = self.call(&self.sql.forget_failures);
            let forget = forget.bind("failures", &*rows);
            let forget = forget.bind("kept", i64::from(MAX_FAILURES_KEPT));
            execute::<Db>(connection, forget).await?;
        }
        Ok(())
    }

    /// Ends split records of which no delivery is open.
    async fn finish<Db: SettleSql>(
        &self,
        connection: &mut Db::Connection,
        mut ids: Vec<i64>,
    ) -> Result<(), sqlx::Error> {
        let Statements {
            lock_split_records,
            open_deliveries,
            ..
        } = self.sql;
        if !ids.is_empty() && lock_split_records.exists() {
            ids = read::<Db, _>(connection, lock_split_records.bind("ids", &*ids)).await?;
        }
        if !ids.is_empty() && open_deliveries.exists() {
            let open = read::<Db, i64>(connection, open_deliveries.bind("ids", &*ids)).await?;
            ids.retain(|id| !open.contains(id));
        }
        if ids.is_empty() {
            return Ok(());
        }
        let finish = if self.keep {
            &self.sql.complete_split_records
        } else {
            &self.sql.delete_split_records
        };
        execute::<Db>(connection, finish.bind("ids", &*ids))
            .await
            .map(drop)
    }
}
