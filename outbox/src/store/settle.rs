//! The statements by which the dispatcher settles batches.

use std::slice;

use super::{
    Batch, DeliveryRow, Fence, LeaseSql, Statements,
    batch::{MAX_FAILURES_KEPT, in_order, json},
    call::{Call, begin, execute, read},
    sql::Sql,
};

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
            let mut writer = Writer::<Self> {
                connection: &mut tx,
                sql,
                fence,
                ours: &ours,
                keep,
            };
            writer.complete(&batch.completed).await?;
            writer
                .change_records(&sql.put_aside, &batch.unhandled)
                .await?;
            writer.split(batch).await?;
            writer.change(&batch.changed_deliveries).await?;
            writer.add_failures(batch).await?;
            writer.finish(batch.ended()).await?;
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
            let mut writer = Writer::<Self> {
                connection,
                sql,
                fence,
                ours: &ours,
                keep,
            };
            let ids = vec![row.record_id];
            if !stored && writer.complete(&ids).await? > 0 {
                return Ok(true);
            }
            if writer.change(slice::from_ref(row)).await? == 0 {
                return Ok(false);
            }
            writer.finish(ids).await?;
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
struct Writer<'a, Db: SettleSql> {
    connection: &'a mut Db::Connection,
    sql: &'a Statements,
    fence: &'a Fence,
    /// The partitions whose leases are locked.
    ours: &'a [u16],
    /// Completed records are kept, not deleted.
    keep: bool,
}

impl<'a, Db: SettleSql> Writer<'a, Db> {
    fn call(&self, statement: &'a Sql) -> Call<'a> {
        statement.fenced(self.fence).bind("ours", self.ours)
    }

    /// Changes or deletes records that are as they were read. Returns how many.
    async fn change_records(
        &mut self,
        statement: &'a Sql,
        ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        if ids.is_empty() {
            return Ok(0);
        }
        let ids = in_order(ids.iter().copied());
        let change = self.call(statement).bind("ids", &*ids);
        execute::<Db>(self.connection, change).await
    }

    async fn complete(&mut self, ids: &[i64]) -> Result<u64, sqlx::Error> {
        let statement = if self.keep {
            &self.sql.complete_records
        } else {
            &self.sql.delete_records
        };
        self.change_records(statement, ids).await
    }

    /// Adds delivery rows for the handlers that did not finish, if the record is as it was read.
    async fn split(&mut self, batch: &Batch) -> Result<(), sqlx::Error> {
        if batch.split_records.is_empty() {
            return Ok(());
        }
        let ids = in_order(batch.split_records.iter().copied());
        let rows = json(&batch.new_deliveries)?;
        let split = self.call(&self.sql.split_records).bind("ids", &*ids);
        let split = split.bind("deliveries", &*rows);
        let Statements { add_deliveries, .. } = self.sql;
        if !add_deliveries.exists() {
            return execute::<Db>(self.connection, split).await.map(drop);
        }
        let split = in_order(read::<Db, _>(self.connection, split).await?);
        let rows = json(&batch.rows_of(&split))?;
        let add = add_deliveries.bind("ids", &*split);
        let add = add.bind("deliveries", &*rows);
        execute::<Db>(self.connection, add).await.map(drop)
    }

    /// Returns how many deliveries were as they were read.
    async fn change(&mut self, rows: &[DeliveryRow]) -> Result<u64, sqlx::Error> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut rows: Vec<&DeliveryRow> = rows.iter().collect();
        rows.sort_by_key(|row| (row.record_id, row.handler));
        let rows = json(&rows)?;
        let change = self.call(&self.sql.change_deliveries);
        execute::<Db>(self.connection, change.bind("deliveries", &*rows)).await
    }

    async fn add_failures(&mut self, batch: &Batch) -> Result<(), sqlx::Error> {
        if batch.failures.is_empty() {
            return Ok(());
        }
        let rows = json(&batch.failures)?;
        let add = self.call(&self.sql.add_failures).bind("failures", &*rows);
        execute::<Db>(self.connection, add).await?;
        if batch.has_old_failures() {
            let forget = self.call(&self.sql.forget_failures);
            let forget = forget.bind("failures", &*rows);
            let forget = forget.bind("kept", i64::from(MAX_FAILURES_KEPT));
            execute::<Db>(self.connection, forget).await?;
        }
        Ok(())
    }

    /// Ends split records of which no delivery is open.
    async fn finish(&mut self, mut ids: Vec<i64>) -> Result<(), sqlx::Error> {
        let (lock, open) = (&self.sql.lock_split_records, &self.sql.open_deliveries);
        if !ids.is_empty() && lock.exists() {
            ids = read::<Db, _>(self.connection, lock.bind("ids", &*ids)).await?;
        }
        if !ids.is_empty() && open.exists() {
            let open = read::<Db, _>(self.connection, open.bind("ids", &*ids)).await?;
            let open = in_order(open);
            ids.retain(|id| open.binary_search(id).is_err());
        }
        if ids.is_empty() {
            return Ok(());
        }
        let finish = if self.keep {
            &self.sql.complete_split_records
        } else {
            &self.sql.delete_split_records
        };
        let finish = finish.bind("ids", &*ids);
        execute::<Db>(self.connection, finish).await.map(drop)
    }
}
