//! Writing to SQLite what became of records.

use std::collections::BTreeSet;

use sqlx::{
    Connection as _, SqlStr, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments,
};

use super::SqliteStatements;
use crate::store::{
    Batch, DeliveryCompletion, DeliveryRow, Fence, HandlerRename, SettleSql,
    settle::{MAX_FAILURES_KEPT, json},
};

/// A statement whose first two parameters are the fence.
fn fenced<'q>(statement: &SqlStr, fence: &Fence) -> Query<'q, Sqlite, SqliteArguments> {
    sqlx::query(statement.clone())
        .bind(fence.json())
        .bind(fence.owner)
}

impl SettleSql for Sqlite {
    async fn settle(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        fence: &Fence,
        batch: &Batch,
        keep: bool,
    ) -> Result<(), sqlx::Error> {
        if batch.has_only_completed() {
            complete(connection, sql, fence, &batch.completed, keep).await?;
            return Ok(());
        }
        // The one writer from the start: SQLite may refuse a reader that wants to write. Dropped
        // before its commit, all of it is undone.
        let mut tx = connection.begin_with("begin immediate").await?;
        if !batch.completed.is_empty() {
            complete(&mut tx, sql, fence, &batch.completed, keep).await?;
        }
        if !batch.unhandled.is_empty() {
            let put_aside = fenced(&sql.put_aside, fence).bind(json(&batch.unhandled)?);
            put_aside.execute(&mut *tx).await?;
        }
        if !batch.split_records.is_empty() {
            split(&mut tx, sql, fence, batch).await?;
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

    async fn mark_transaction(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query("savepoint outbox_handler")
            .execute(connection)
            .await
            .map(drop)
    }

    async fn check_mark(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query("release savepoint outbox_handler")
            .execute(connection)
            .await
            .map(drop)
    }

    async fn complete_in_transaction(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
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
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
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
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        fence: &Fence,
        event: &str,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let requeue = fenced(&sql.requeue_unhandled, fence)
            .bind(event)
            .bind(limit);
        Ok(requeue.execute(connection).await?.rows_affected())
    }

    /// How soon SQLite writes to its disk is a setting of the whole connection pool.
    async fn configure(_: &mut SqliteConnection, _: bool) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

async fn complete(
    connection: &mut SqliteConnection,
    sql: &SqliteStatements,
    fence: &Fence,
    ids: &[i64],
    keep: bool,
) -> Result<u64, sqlx::Error> {
    let statement = if keep {
        &sql.complete_records
    } else {
        &sql.delete_records
    };
    let complete = fenced(statement, fence).bind(json(ids)?);
    Ok(complete.execute(connection).await?.rows_affected())
}

/// Delivery rows for the handlers that did not finish, if the record is still as it was read.
async fn split(
    connection: &mut SqliteConnection,
    sql: &SqliteStatements,
    fence: &Fence,
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let split: BTreeSet<i64> = sqlx::query_scalar(sql.split_records.clone())
        .bind(fence.json())
        .bind(fence.owner)
        .bind(json(&batch.split_records)?)
        .fetch_all(&mut *connection)
        .await?
        .into_iter()
        .collect();
    let add = sqlx::query(sql.add_deliveries.clone()).bind(json(&batch.rows_of(&split))?);
    add.execute(connection).await.map(drop)
}

async fn change(
    connection: &mut SqliteConnection,
    sql: &SqliteStatements,
    fence: &Fence,
    rows: &[DeliveryRow],
) -> Result<u64, sqlx::Error> {
    let change = fenced(&sql.change_deliveries, fence).bind(json(rows)?);
    Ok(change.execute(connection).await?.rows_affected())
}

async fn add_failures(
    connection: &mut SqliteConnection,
    sql: &SqliteStatements,
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
    connection: &mut SqliteConnection,
    sql: &SqliteStatements,
    ids: &[i64],
    keep: bool,
) -> Result<(), sqlx::Error> {
    if keep {
        let complete = sqlx::query(sql.complete_split_records.clone()).bind(json(ids)?);
        return complete.execute(connection).await.map(drop);
    }
    let delete = sqlx::query_scalar(sql.delete_split_records.clone()).bind(json(ids)?);
    let deleted: Vec<i64> = delete.fetch_all(&mut *connection).await?;
    let deleted = json(&deleted)?;
    for statement in [&sql.delete_deliveries, &sql.delete_failures] {
        let delete = sqlx::query(statement.clone()).bind(&deleted);
        delete.execute(&mut *connection).await?;
    }
    Ok(())
}
