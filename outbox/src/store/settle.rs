//! The statements with which the settler writes batches.

use std::slice;

use super::{
    Batch, DeliveryRow, Fence, Lease, LeaseSql, Role, Statements,
    batch::{MAX_FAILURES_KEPT, in_order, rows_as_json},
    call::{Call, begin, execute, read},
    sql::Sql,
};
use crate::record::Partition;

/// Which part of a batch the database refused.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "a refusal is not a success"]
pub struct SettleOutcome {
    /// Leases of the fence that this process no longer had. No change in their partitions was written.
    pub(crate) refused: Vec<Lease>,
}

/// The delivery that a handler's own transaction completes.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryCompletion<'a> {
    pub(crate) row: &'a DeliveryRow,
    /// The delivery had a row when the handler started. Otherwise it may have a row by now.
    pub(crate) has_row: bool,
    /// Completed records are kept, not deleted.
    pub(crate) keep_completed: bool,
}

/// A handler that has a new id.
#[derive(Debug, Clone, Copy)]
pub struct HandlerRename<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

/// The statements that write. Each has the fence, and the row as it was read, as conditions. So
/// writing a batch again, or too late, changes nothing.
pub trait SettleSql: LeaseSql {
    /// Writes a batch in one transaction, without the partitions whose leases this process has lost.
    /// With `keep_completed`, completed records are kept, not deleted.
    fn settle(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        batch: &Batch,
        keep_completed: bool,
    ) -> impl Future<Output = Result<SettleOutcome, sqlx::Error>> + Send {
        async move {
            let autocommit = if keep_completed {
                &sql.complete_records_autocommit
            } else {
                &sql.delete_records_autocommit
            };
            if batch.has_only_completions() && autocommit.exists() {
                let complete = autocommit.bind_fence(fence).bind("ids", &*batch.completed);
                let changed = execute::<Self>(connection, complete).await?;
                if usize::try_from(changed) == Ok(batch.completed.len()) {
                    return Ok(SettleOutcome::default());
                }
                // The fence refused the other records, or an operator or an earlier try changed them.
                let owned = Self::lock_leases(connection, sql, fence).await?;
                return Ok(SettleOutcome::of(fence, &owned));
            }
            let mut tx = begin::<Self>(connection, Self::BEGIN).await?;
            execute::<Self>(&mut tx, sql.relax_transaction.call()).await?;
            // An instance that takes these partitions waits for the end of this transaction, so that
            // it sees either all blocking rows of the batch or none.
            let owned = Self::lock_leases(&mut tx, sql, fence).await?;
            let outcome = SettleOutcome::of(fence, &owned);
            if owned.is_empty() {
                tx.rollback().await?;
                return Ok(outcome);
            }
            let mut writer = Writer::<Self> {
                connection: &mut tx,
                sql,
                fence,
                owned: &owned,
                keep_completed,
            };
            writer.complete_records(&batch.completed).await?;
            writer
                .change_records(&sql.set_unhandled, &batch.unhandled)
                .await?;
            writer.split_records(batch).await?;
            writer.change_deliveries(&batch.changed_deliveries).await?;
            writer.add_failures(batch).await?;
            writer
                .finish_split_records(batch.records_to_finish())
                .await?;
            tx.commit().await?;
            Ok(outcome)
        }
    }

    /// Marks the transaction that a handler gets.
    fn mark_transaction(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        let mark = sqlx::query("savepoint outbox_handler");
        async move { Self::execute_query(connection, mark).await.map(drop) }
    }

    /// Fails if this is no longer the marked transaction. Some databases end a transaction
    /// themselves, for example after a deadlock. Later statements of the handler are not part of it.
    fn check_mark(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        let release = sqlx::query("release savepoint outbox_handler");
        async move { Self::execute_query(connection, release).await.map(drop) }
    }

    /// Completes a record, or its delivery, inside a handler's own transaction. Returns `false` if this
    /// process no longer owns it or it has changed since. Then the transaction must not commit.
    fn complete_in_transaction(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        completion: DeliveryCompletion<'_>,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send {
        async move {
            let row = completion.row;
            let mut owned = Vec::new();
            if Self::WORDS.needs_lease_locks {
                owned = Self::lock_leases(connection, sql, fence).await?;
                if owned.is_empty() {
                    return Ok(false);
                }
            }
            let mut writer = Writer::<Self> {
                connection,
                sql,
                fence,
                owned: &owned,
                keep_completed: completion.keep_completed,
            };
            let ids = vec![row.record_id];
            if !completion.has_row && writer.complete_records(&ids).await? > 0 {
                return Ok(true);
            }
            if writer.change_deliveries(slice::from_ref(row)).await? == 0 {
                return Ok(false);
            }
            writer.finish_split_records(ids).await?;
            Ok(true)
        }
    }

    /// Writes the new id of a renamed handler into its deliveries.
    fn rename_handler(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        rename: HandlerRename<'_>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let mut tx = begin::<Self>(connection, Self::BEGIN).await?;
            let owned = Self::lock_leases(&mut tx, sql, fence).await?;
            let call = sql.rename_handler.bind_fence(fence).bind("owned", &*owned);
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
            let owned = Self::lock_leases(&mut tx, sql, fence).await?;
            let call = sql
                .requeue_unhandled
                .bind_fence(fence)
                .bind("owned", &*owned);
            let call = call.bind("event", event).bind("limit", limit);
            let changed = execute::<Self>(&mut tx, call).await?;
            tx.commit().await?;
            Ok(changed)
        }
    }

    /// Sets up a kept connection. Behind a proxy that shares sessions, transactions of other programs
    /// may run with these settings, so the settings must not harm them.
    fn configure(
        connection: &mut Self::Connection,
        role: Role,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

impl SettleOutcome {
    /// `owned` are the partitions whose leases this process still has.
    fn of(fence: &Fence, owned: &[Partition]) -> Self {
        let leases = fence.leases.iter();
        let refused = leases.filter(|lease| !owned.contains(&lease.partition));
        Self {
            refused: refused.copied().collect(),
        }
    }
}

/// Writes the changes of a batch, or of one completion. Each function does nothing without rows.
struct Writer<'a, Db: SettleSql> {
    connection: &'a mut Db::Connection,
    sql: &'a Statements,
    fence: &'a Fence,
    /// The partitions whose leases are locked.
    owned: &'a [Partition],
    /// Completed records are kept, not deleted.
    keep_completed: bool,
}

impl<'a, Db: SettleSql> Writer<'a, Db> {
    fn call(&self, statement: &'a Sql) -> Call<'a> {
        statement.bind_fence(self.fence).bind("owned", self.owned)
    }

    /// Changes or deletes records that have not changed since they were read. Returns how many.
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

    async fn complete_records(&mut self, ids: &[i64]) -> Result<u64, sqlx::Error> {
        let statement = if self.keep_completed {
            &self.sql.complete_records
        } else {
            &self.sql.delete_records
        };
        self.change_records(statement, ids).await
    }

    /// Adds deliveries for the handlers that did not finish, if the record has not changed since it was
    /// read.
    async fn split_records(&mut self, batch: &Batch) -> Result<(), sqlx::Error> {
        if batch.split_records.is_empty() {
            return Ok(());
        }
        let ids = in_order(batch.split_records.iter().copied());
        let rows = rows_as_json(&batch.new_deliveries)?;
        let split = self.call(&self.sql.split_records).bind("ids", &*ids);
        let split = split.bind("deliveries", &*rows);
        let Statements { add_deliveries, .. } = self.sql;
        if !add_deliveries.exists() {
            return execute::<Db>(self.connection, split).await.map(drop);
        }
        let split = in_order(read::<Db, _>(self.connection, split).await?);
        let rows = rows_as_json(&batch.rows_of(&split))?;
        let add = add_deliveries.bind("ids", &*split);
        let add = add.bind("deliveries", &*rows);
        execute::<Db>(self.connection, add).await.map(drop)
    }

    /// Changes deliveries that have not changed since they were read. Returns how many.
    async fn change_deliveries(&mut self, rows: &[DeliveryRow]) -> Result<u64, sqlx::Error> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut rows: Vec<&DeliveryRow> = rows.iter().collect();
        rows.sort_by_key(|row| (row.record_id, row.handler));
        let rows = rows_as_json(&rows)?;
        let change = self.call(&self.sql.change_deliveries);
        execute::<Db>(self.connection, change.bind("deliveries", &*rows)).await
    }

    async fn add_failures(&mut self, batch: &Batch) -> Result<(), sqlx::Error> {
        if batch.failures.is_empty() {
            return Ok(());
        }
        let rows = rows_as_json(&batch.failures)?;
        let add = self.call(&self.sql.add_failures).bind("failures", &*rows);
        execute::<Db>(self.connection, add).await?;
        if batch.has_old_failures() {
            let delete = self.call(&self.sql.delete_old_failures);
            let delete = delete.bind("failures", &*rows);
            let delete = delete.bind("kept", i64::from(MAX_FAILURES_KEPT));
            execute::<Db>(self.connection, delete).await?;
        }
        Ok(())
    }

    /// Completes split records that have no open delivery.
    async fn finish_split_records(&mut self, mut ids: Vec<i64>) -> Result<(), sqlx::Error> {
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
        let finish = if self.keep_completed {
            &self.sql.complete_split_records
        } else {
            &self.sql.delete_split_records
        };
        let finish = finish.bind("ids", &*ids);
        execute::<Db>(self.connection, finish).await.map(drop)
    }
}
