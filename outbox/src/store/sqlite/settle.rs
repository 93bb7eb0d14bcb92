//! Writing to SQLite what became of records.

use std::collections::BTreeSet;

use sqlx::{Connection as _, Sqlite, SqliteConnection, sqlite::SqliteArguments};

use super::NOW;
use crate::store::{
    Batch, DeliveryRow, Fence, SettleSql, TableNames,
    settle::{MAX_FAILURES_KEPT, json},
    trusted,
};

/// The partitions that are still ours, with `?1` and `?2` bound by [`fenced`].
fn fence(names: &TableNames) -> String {
    let lease = names.table("lease", '"');
    format!(
        "(
    select l.part from json_each(?1) f cross join {lease} l
    where l.part = f.value ->> 0 and l.epoch = f.value ->> 1 and l.owner = ?2
)"
    )
}

/// A statement whose first two parameters are the fence.
fn fenced(sql: String, fence: &Fence) -> sqlx::query::Query<'_, Sqlite, SqliteArguments> {
    sqlx::query(trusted(sql))
        .bind(fence.json())
        .bind(fence.owner)
}

impl SettleSql for Sqlite {
    async fn settle(
        connection: &mut SqliteConnection,
        names: &TableNames,
        fence: &Fence,
        batch: &Batch,
        keep: bool,
    ) -> Result<(), sqlx::Error> {
        if batch.only_done() {
            done(connection, names, fence, &batch.done, keep).await?;
            return Ok(());
        }
        // The one writer from the start: a reader that wants to write may be refused. Dropped
        // before its commit, all of it is undone.
        let mut tx = connection.begin_with("begin immediate").await?;
        if !batch.done.is_empty() {
            done(&mut tx, names, fence, &batch.done, keep).await?;
        }
        if !batch.unhandled.is_empty() {
            unhandled(&mut tx, names, fence, &batch.unhandled).await?;
        }
        if !batch.split.is_empty() {
            split(&mut tx, names, fence, batch).await?;
        }
        if !batch.changed.is_empty() {
            change(&mut tx, names, fence, batch).await?;
        }
        if !batch.failures.is_empty() {
            remember(&mut tx, names, fence, batch).await?;
        }
        let ended = batch.ended();
        if !ended.is_empty() {
            finish(&mut tx, names, &ended, keep).await?;
        }
        tx.commit().await
    }

    async fn mark_transaction(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query("savepoint outbox_handler")
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn check_mark(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query("release savepoint outbox_handler")
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn complete_in_transaction(
        connection: &mut SqliteConnection,
        names: &TableNames,
        fence: &Fence,
        row: &DeliveryRow,
        stored: bool,
        keep: bool,
    ) -> Result<bool, sqlx::Error> {
        let batch = Batch {
            changed: vec![row.clone()],
            ..Batch::default()
        };
        if !stored && done(connection, names, fence, &[row.record_id], keep).await? > 0 {
            return Ok(true);
        }
        if change(connection, names, fence, &batch).await? == 0 {
            return Ok(false);
        }
        finish(connection, names, &[row.record_id], keep).await?;
        Ok(true)
    }

    async fn rename_handler(
        connection: &mut SqliteConnection,
        names: &TableNames,
        fence: &Fence,
        from: &str,
        to: &str,
    ) -> Result<(), sqlx::Error> {
        let (delivery, ours) = (names.table("delivery", '"'), self::fence(names));
        let sql = format!(
            "update {delivery} as d set handler = ?4
where d.handler = ?3 and d.part in {ours} and not exists (
    select 1 from {delivery} e where e.record_id = d.record_id and e.handler = ?4
)"
        );
        fenced(sql, fence)
            .bind(from)
            .bind(to)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn requeue_unhandled(
        connection: &mut SqliteConnection,
        names: &TableNames,
        fence: &Fence,
        event: &str,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let (record, ours) = (names.table("record", '"'), self::fence(names));
        let sql = format!(
            "update {record} set status = 'pending' where id in (
    select id from {record} where status = 'unhandled' and part in {ours} and event = ?3 order by id limit ?4
)"
        );
        let done = fenced(sql, fence)
            .bind(event)
            .bind(limit)
            .execute(connection)
            .await?;
        Ok(done.rows_affected())
    }

    /// How soon SQLite writes to its disk is a setting of the whole connection pool.
    async fn configure(_: &mut SqliteConnection, _: bool) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

/// The condition on records of a batch, with `?3` their ids: still ours and as they were read.
/// `+`: the index of a status must not be preferred to the ids.
fn as_read(names: &TableNames) -> String {
    let ours = fence(names);
    format!(
        "id in (select u.value from json_each(?3) u) and +status in ('pending', 'scheduled') and +part in {ours}"
    )
}

async fn done(
    connection: &mut SqliteConnection,
    names: &TableNames,
    fence: &Fence,
    ids: &[i64],
    keep: bool,
) -> Result<u64, sqlx::Error> {
    let (record, as_read) = (names.table("record", '"'), as_read(names));
    let change = if keep {
        format!("update {record} set status = 'completed', completed_at = {NOW}")
    } else {
        format!("delete from {record}")
    };
    let done = fenced(format!("{change} where {as_read}"), fence)
        .bind(json(ids)?)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

async fn unhandled(
    connection: &mut SqliteConnection,
    names: &TableNames,
    fence: &Fence,
    ids: &[i64],
) -> Result<(), sqlx::Error> {
    let (record, as_read) = (names.table("record", '"'), as_read(names));
    let sql = format!("update {record} set status = 'unhandled' where {as_read}");
    fenced(sql, fence)
        .bind(json(ids)?)
        .execute(connection)
        .await?;
    Ok(())
}

/// Delivery rows for the handlers that did not finish, if the record is still as it was read.
async fn split(
    connection: &mut SqliteConnection,
    names: &TableNames,
    fence: &Fence,
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
    let as_read = as_read(names);
    let sql = format!("update {record} set status = 'split' where {as_read} returning id");
    let split: BTreeSet<i64> = sqlx::query_scalar(trusted(sql))
        .bind(fence.json())
        .bind(fence.owner)
        .bind(json(&batch.split)?)
        .fetch_all(&mut *connection)
        .await?
        .into_iter()
        .collect();
    let rows: Vec<&DeliveryRow> = batch
        .split_rows
        .iter()
        .filter(|row| split.contains(&row.record_id))
        .collect();
    let sql = trusted(format!(
        "insert into {delivery} (record_id, part, key, handler, status, blocking, attempt, failure_count, first_failed_at,
    due_at, error, error_kind, fingerprint)
select u.value ->> 'record_id', u.value ->> 'part', u.value ->> 'key', u.value ->> 'handler', u.value ->> 'status',
    u.value ->> 'blocking', u.value ->> 'attempt', u.value ->> 'failure_count', u.value ->> 'first_failed_at',
    {NOW} + (u.value ->> 'delay'), u.value ->> 'error', u.value ->> 'error_kind', u.value ->> 'fingerprint'
from json_each(?1) u where true order by u.key
on conflict (record_id, handler) do nothing"
    ));
    sqlx::query(sql)
        .bind(json(&rows)?)
        .execute(connection)
        .await?;
    Ok(())
}

/// Deliveries that are still as they were read become what they are to be.
async fn change(
    connection: &mut SqliteConnection,
    names: &TableNames,
    fence: &Fence,
    batch: &Batch,
) -> Result<u64, sqlx::Error> {
    let (delivery, ours) = (names.table("delivery", '"'), self::fence(names));
    let sql = format!(
        "update {delivery} as d set
    status = u.value ->> 'status', blocking = u.value ->> 'blocking', attempt = u.value ->> 'attempt',
    failure_count = u.value ->> 'failure_count', first_failed_at = u.value ->> 'first_failed_at',
    due_at = {NOW} + (u.value ->> 'delay'),
    finished_at = case when u.value ->> 'status' = 'completed' then {NOW} end,
    error = coalesce(u.value ->> 'error', d.error), error_kind = coalesce(u.value ->> 'error_kind', d.error_kind),
    fingerprint = coalesce(u.value ->> 'fingerprint', d.fingerprint)
from json_each(?3) as u
where d.record_id = u.value ->> 'record_id' and d.handler = u.value ->> 'handler'
    and +d.attempt = u.value ->> 'was' and +d.status in ('waiting', 'retrying') and +d.part in {ours}"
    );
    let done = fenced(sql, fence)
        .bind(json(&batch.changed)?)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

async fn remember(
    connection: &mut SqliteConnection,
    names: &TableNames,
    fence: &Fence,
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let (delivery, failure) = (names.table("delivery", '"'), names.table("failure", '"'));
    let ours = self::fence(names);
    let sql = format!(
        "insert into {failure} (record_id, handler, attempt, kind, fingerprint, error)
select d.record_id, d.handler, u.value ->> 'attempt', u.value ->> 'kind', u.value ->> 'fingerprint', u.value ->> 'error'
from json_each(?3) u cross join {delivery} d
where d.record_id = u.value ->> 'record_id' and d.handler = u.value ->> 'handler' and +d.part in {ours}
on conflict do nothing"
    );
    let rows = json(&batch.failures)?;
    fenced(sql, fence)
        .bind(rows.clone())
        .execute(&mut *connection)
        .await?;
    if batch
        .failures
        .iter()
        .any(|row| row.attempt > MAX_FAILURES_KEPT)
    {
        let forget = format!(
            "delete from {failure} where rowid in (
    select f.rowid from json_each(?3) u cross join {failure} f
    where f.record_id = u.value ->> 'record_id' and f.handler = u.value ->> 'handler'
        and f.attempt <= (u.value ->> 'attempt') - ?4 and u.value ->> 'part' in {ours}
)"
        );
        fenced(forget, fence)
            .bind(rows)
            .bind(i64::from(MAX_FAILURES_KEPT))
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Split records are done when none of their deliveries is left.
async fn finish(
    connection: &mut SqliteConnection,
    names: &TableNames,
    ids: &[i64],
    keep: bool,
) -> Result<(), sqlx::Error> {
    let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
    let over = format!(
        "id in (select u.value from json_each(?1) u) and +status = 'split' and not exists (
    select 1 from {delivery} d where d.record_id = {record}.id and d.status in ('waiting', 'retrying', 'failed')
)"
    );
    if keep {
        let sql = trusted(format!(
            "update {record} set status = 'completed', completed_at = {NOW} where {over}"
        ));
        sqlx::query(sql)
            .bind(json(ids)?)
            .execute(connection)
            .await?;
        return Ok(());
    }
    let sql = trusted(format!("delete from {record} where {over} returning id"));
    let gone: Vec<i64> = sqlx::query_scalar(sql)
        .bind(json(ids)?)
        .fetch_all(&mut *connection)
        .await?;
    let gone = json(&gone)?;
    for table in [delivery, names.table("failure", '"')] {
        let sql = trusted(format!(
            "delete from {table} where record_id in (select u.value from json_each(?1) u)"
        ));
        sqlx::query(sql)
            .bind(&gone)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
