//! Writing to PostgreSQL what became of records.

use sqlx::{Connection as _, PgConnection, Postgres, SqlStr, postgres::PgArguments};

use super::PostgresStatements;
use crate::store::{
    Batch, DeliveryCompletion, DeliveryRow, Fence, HandlerRename, LeaseSql as _, SettleSql,
    settle::{MAX_FAILURES_KEPT, json},
};

/// A statement whose first three parameters are the fence.
fn fenced<'q>(statement: &SqlStr, fence: &Fence) -> sqlx::query::Query<'q, Postgres, PgArguments> {
    let (parts, epochs) = fence.columns();
    sqlx::query(statement.clone())
        .bind(parts)
        .bind(epochs)
        .bind(fence.owner)
}

impl SettleSql for Postgres {
    async fn settle(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        fence: &Fence,
        batch: &Batch,
        keep: bool,
    ) -> Result<(), sqlx::Error> {
        if batch.has_only_completed() {
            let statement = if keep {
                &sql.complete_records_alone
            } else {
                &sql.delete_records_alone
            };
            let complete = fenced(statement, fence).bind(&batch.completed);
            return complete.execute(connection).await.map(drop);
        }
        // Dropped before its commit, all of it is undone.
        let mut tx = connection.begin().await?;
        sqlx::query(sql.relax_transaction.clone())
            .execute(&mut *tx)
            .await?;
        // An instance that takes these partitions over waits for the end of this transaction: it
        // must see all rows that block, or none of them.
        if Self::lock_leases(&mut tx, sql, fence).await?.is_empty() {
            return tx.rollback().await;
        }
        if !batch.completed.is_empty() {
            complete(&mut tx, sql, fence, &batch.completed, keep).await?;
        }
        if !batch.unhandled.is_empty() {
            let put_aside = fenced(&sql.put_aside, fence).bind(&batch.unhandled);
            put_aside.execute(&mut *tx).await?;
        }
        if !batch.split_records.is_empty() {
            let split = fenced(&sql.split_records, fence).bind(&batch.split_records);
            let rows = json(&batch.new_deliveries)?;
            split.bind(rows).execute(&mut *tx).await?;
        }
        if !batch.changed_deliveries.is_empty() {
            change(&mut tx, sql, fence, &batch.changed_deliveries).await?;
        }
        if !batch.failures.is_empty() {
            add_failures(&mut tx, sql, fence, batch).await?;
        }
        let ended = batch.ended();
        if !ended.is_empty() {
            finish(&mut tx, sql, &ended, keep).await?;
        }
        tx.commit().await
    }

    async fn mark_transaction(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query("savepoint outbox_handler")
            .execute(connection)
            .await
            .map(drop)
    }

    async fn check_mark(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query("release savepoint outbox_handler")
            .execute(connection)
            .await
            .map(drop)
    }

    async fn complete_in_transaction(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        fence: &Fence,
        completion: DeliveryCompletion<'_>,
    ) -> Result<bool, sqlx::Error> {
        let DeliveryCompletion { row, stored, keep } = completion;
        let ids = &[row.record_id];
        if !stored && complete(connection, sql, fence, ids, keep).await? > 0 {
            return Ok(true);
        }
        if change(connection, sql, fence, std::slice::from_ref(row)).await? == 0 {
            return Ok(false);
        }
        finish(connection, sql, ids, keep).await?;
        Ok(true)
    }

    async fn rename_handler(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        fence: &Fence,
        rename: HandlerRename<'_>,
    ) -> Result<(), sqlx::Error> {
        fenced(&sql.rename_handler, fence)
            .bind(rename.from)
            .bind(rename.to)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn requeue_unhandled(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        fence: &Fence,
        event: &str,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let requeue = fenced(&sql.requeue_unhandled, fence)
            .bind(event)
            .bind(limit);
        let done = requeue.execute(connection).await?;
        Ok(done.rows_affected())
    }

    async fn configure(connection: &mut PgConnection, _settles: bool) -> Result<(), sqlx::Error> {
        // A plan that was made while the table was empty would be kept when it is full.
        sqlx::query("set plan_cache_mode = force_custom_plan")
            .execute(connection)
            .await
            .map(drop)
    }
}

async fn complete(
    connection: &mut PgConnection,
    sql: &PostgresStatements,
    fence: &Fence,
    ids: &[i64],
    keep: bool,
) -> Result<u64, sqlx::Error> {
    let statement = if keep {
        &sql.complete_records
    } else {
        &sql.delete_records
    };
    let done = fenced(statement, fence)
        .bind(ids)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

async fn change(
    connection: &mut PgConnection,
    sql: &PostgresStatements,
    fence: &Fence,
    rows: &[DeliveryRow],
) -> Result<u64, sqlx::Error> {
    let change = fenced(&sql.change_deliveries, fence).bind(json(rows)?);
    Ok(change.execute(connection).await?.rows_affected())
}

async fn add_failures(
    connection: &mut PgConnection,
    sql: &PostgresStatements,
    fence: &Fence,
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let rows = json(&batch.failures)?;
    let add = fenced(&sql.add_failures, fence).bind(&rows);
    add.execute(&mut *connection).await?;
    if batch.has_old_failures() {
        let forget = fenced(&sql.forget_failures, fence).bind(&rows);
        let forget = forget.bind(i64::from(MAX_FAILURES_KEPT));
        forget.execute(connection).await?;
    }
    Ok(())
}

async fn finish(
    connection: &mut PgConnection,
    sql: &PostgresStatements,
    ids: &[i64],
    keep: bool,
) -> Result<(), sqlx::Error> {
    let lock = sqlx::query(sql.lock_split_records.clone()).bind(ids);
    lock.execute(&mut *connection).await?;
    let statement = if keep {
        &sql.complete_split_records
    } else {
        &sql.delete_split_records
    };
    let finish = sqlx::query(statement.clone()).bind(ids);
    finish.execute(connection).await.map(drop)
}
