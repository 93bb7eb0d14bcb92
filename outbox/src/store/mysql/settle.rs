//! Writing to MySQL what became of records.

use std::collections::BTreeSet;

use sqlx::{Connection as _, MySql, MySqlConnection, mysql::MySqlArguments, query::Query};

use super::{MySqlStatements, repeated::Repeated};
use crate::store::{
    Batch, DeliveryCompletion, DeliveryRow, Fence, HandlerRename, LeaseSql as _, SettleSql,
    settle::{MAX_FAILURES_KEPT, json},
};

/// A statement on given rows, the last parameters of which are the partitions that this process
/// owns.
fn guarded(
    statement: &Repeated,
    rows: String,
    ours: &[u16],
) -> Query<'static, MySql, MySqlArguments> {
    of_ours(sqlx::query(statement.times(ours.len())).bind(rows), ours)
}

fn of_ours<'q>(
    mut query: Query<'q, MySql, MySqlArguments>,
    ours: &[u16],
) -> Query<'q, MySql, MySqlArguments> {
    for part in ours {
        query = query.bind(part.cast_signed());
    }
    query
}

fn in_order(ids: impl IntoIterator<Item = i64>) -> BTreeSet<i64> {
    ids.into_iter().collect()
}

impl SettleSql for MySql {
    async fn settle(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        fence: &Fence,
        batch: &Batch,
        keep: bool,
    ) -> Result<(), sqlx::Error> {
        // Dropped before its commit, all of it is undone.
        let mut tx = connection.begin().await?;
        let ours = &Self::lock_leases(&mut tx, sql, fence).await?;
        if ours.is_empty() {
            return tx.rollback().await;
        }
        if !batch.completed.is_empty() {
            complete(&mut tx, sql, ours, &batch.completed, keep).await?;
        }
        if !batch.unhandled.is_empty() {
            let ids = json(&in_order(batch.unhandled.iter().copied()))?;
            let put_aside = guarded(&sql.put_aside, ids, ours);
            put_aside.execute(&mut *tx).await?;
        }
        if !batch.split_records.is_empty() {
            split(&mut tx, sql, ours, batch).await?;
        }
        if !batch.changed_deliveries.is_empty() {
            change(&mut tx, sql, ours, &batch.changed_deliveries).await?;
        }
        if !batch.failures.is_empty() {
            add_failures(&mut tx, sql, ours, batch).await?;
        }
        let ended = batch.ended();
        if !ended.is_empty() {
            finish(&mut tx, sql, &ended, keep).await?;
        }
        tx.commit().await
    }

    async fn mark_transaction(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        sqlx::query("savepoint outbox_handler")
            .execute(connection)
            .await
            .map(drop)
    }

    async fn check_mark(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        sqlx::query("release savepoint outbox_handler")
            .execute(connection)
            .await
            .map(drop)
    }

    async fn complete_in_transaction(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        fence: &Fence,
        completion: DeliveryCompletion<'_>,
    ) -> Result<bool, sqlx::Error> {
        let DeliveryCompletion { row, stored, keep } = completion;
        let ours = &Self::lock_leases(connection, sql, fence).await?;
        if ours.is_empty() {
            return Ok(false);
        }
        let ids = &[row.record_id];
        if !stored && complete(connection, sql, ours, ids, keep).await? > 0 {
            return Ok(true);
        }
        if change(connection, sql, ours, std::slice::from_ref(row)).await? == 0 {
            return Ok(false);
        }
        finish(connection, sql, ids, keep).await?;
        Ok(true)
    }

    async fn rename_handler(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        fence: &Fence,
        rename: HandlerRename<'_>,
    ) -> Result<(), sqlx::Error> {
        let HandlerRename { from, to } = rename;
        let mut tx = connection.begin().await?;
        let ours = &Self::lock_leases(&mut tx, sql, fence).await?;
        let query = sqlx::query(sql.rename_handler.times(ours.len()));
        let query = query.bind(to).bind(to).bind(from);
        of_ours(query, ours).execute(&mut *tx).await?;
        tx.commit().await
    }

    async fn requeue_unhandled(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        fence: &Fence,
        event: &str,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let mut tx = connection.begin().await?;
        let ours = &Self::lock_leases(&mut tx, sql, fence).await?;
        let query = sqlx::query(sql.requeue_unhandled.times(ours.len())).bind(event);
        let requeue = of_ours(query, ours).bind(limit);
        let done = requeue.execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(done.rows_affected())
    }

    /// How soon MySQL writes to its disk is a setting of the whole server. But settling needs no
    /// repeatable reads, and without them no gaps between rows are locked, in which others insert.
    async fn configure(connection: &mut MySqlConnection, settles: bool) -> Result<(), sqlx::Error> {
        limit_idle_transactions(connection).await?;
        if settles {
            sqlx::query("set session transaction isolation level read committed")
                .execute(connection)
                .await?;
        }
        Ok(())
    }
}

/// A process that is frozen in the middle of a transaction would keep others from the rows that it
/// has locked. MariaDB ends such a session after this many seconds; MySQL itself cannot, and reads
/// a comment here.
pub(super) async fn limit_idle_transactions(
    connection: &mut MySqlConnection,
) -> Result<(), sqlx::Error> {
    sqlx::query("set @outbox = 0 /*M!100300 , session idle_transaction_timeout = 5 */")
        .execute(connection)
        .await
        .map(drop)
}

async fn complete(
    connection: &mut MySqlConnection,
    sql: &MySqlStatements,
    ours: &[u16],
    ids: &[i64],
    keep: bool,
) -> Result<u64, sqlx::Error> {
    let statement = if keep {
        &sql.complete_records
    } else {
        &sql.delete_records
    };
    let ids = json(&in_order(ids.iter().copied()))?;
    let complete = guarded(statement, ids, ours);
    Ok(complete.execute(connection).await?.rows_affected())
}

/// Delivery rows for the handlers that did not finish, if the record is still as it was read.
async fn split(
    connection: &mut MySqlConnection,
    sql: &MySqlStatements,
    ours: &[u16],
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let ids = json(&in_order(batch.split_records.iter().copied()))?;
    let lock = sqlx::query_scalar(sql.lock_records.times(ours.len())).bind(ids);
    let lock = ours
        .iter()
        .fold(lock, |lock, part| lock.bind(part.cast_signed()));
    let split = in_order(lock.fetch_all(&mut *connection).await?);
    let change = sqlx::query(sql.split_records.clone()).bind(json(&split)?);
    change.execute(&mut *connection).await?;
    let add = sqlx::query(sql.add_deliveries.clone()).bind(json(&batch.rows_of(&split))?);
    add.execute(connection).await.map(drop)
}

async fn change(
    connection: &mut MySqlConnection,
    sql: &MySqlStatements,
    ours: &[u16],
    rows: &[DeliveryRow],
) -> Result<u64, sqlx::Error> {
    let mut rows: Vec<&DeliveryRow> = rows.iter().collect();
    rows.sort_by_key(|row| (row.record_id, row.handler));
    let change = guarded(&sql.change_deliveries, json(&rows)?, ours);
    Ok(change.execute(connection).await?.rows_affected())
}

async fn add_failures(
    connection: &mut MySqlConnection,
    sql: &MySqlStatements,
    ours: &[u16],
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let rows = json(&batch.failures)?;
    let add = guarded(&sql.add_failures, rows.clone(), ours);
    add.execute(&mut *connection).await?;
    if batch.has_old_failures() {
        let forget = guarded(&sql.forget_failures, rows, ours);
        let forget = forget.bind(i64::from(MAX_FAILURES_KEPT));
        forget.execute(connection).await?;
    }
    Ok(())
}

/// Split records are done when none of their deliveries is left.
async fn finish(
    connection: &mut MySqlConnection,
    sql: &MySqlStatements,
    ids: &[i64],
    keep: bool,
) -> Result<(), sqlx::Error> {
    let lock = sqlx::query_scalar(sql.lock_split_records.clone()).bind(json(ids)?);
    let split: Vec<i64> = lock.fetch_all(&mut *connection).await?;
    let open = sqlx::query_scalar(sql.open_deliveries.clone()).bind(json(&split)?);
    let open = in_order(open.fetch_all(&mut *connection).await?);
    let over: Vec<i64> = split.into_iter().filter(|id| !open.contains(id)).collect();
    let over = json(&over)?;
    if keep {
        let complete = sqlx::query(sql.complete_split_records.clone()).bind(over);
        return complete.execute(connection).await.map(drop);
    }
    for statement in [
        &sql.delete_split_records,
        &sql.delete_deliveries,
        &sql.delete_failures,
    ] {
        let delete = sqlx::query(statement.clone()).bind(&over);
        delete.execute(&mut *connection).await?;
    }
    Ok(())
}
