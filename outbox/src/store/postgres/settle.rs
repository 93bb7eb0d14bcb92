//! Writing to PostgreSQL what became of records.

use sqlx::{Connection as _, PgConnection, Postgres};

use crate::store::{
    Batch, DeliveryRow, Fence, LeaseSql as _, SettleSql, TableNames,
    settle::{MAX_FAILURES_KEPT, json},
    trusted,
};

/// The partitions that are still ours, with `$1` to `$3` bound by [`Fenced`]. An uncorrelated
/// array: evaluated once, and the planner keeps the primary key of what it guards.
fn fence(names: &TableNames) -> String {
    let lease = names.table("lease", '"');
    format!(
        "any(array(
    select l.part from {lease} l join unnest($1::smallint[], $2::bigint[]) as f (part, epoch)
        on l.part = f.part and l.epoch = f.epoch
    where l.owner = $3
))"
    )
}

/// Of the transaction that a statement is in: what it writes may be forgotten in a crash of the
/// database, and what it touched is delivered again. Never of a session, which a proxy may share
/// with the transactions of others.
const RELAXED_COMMIT: &str = "set_config('synchronous_commit', 'off', true)";

/// A statement whose first three parameters are the fence.
fn fenced(
    sql: String,
    fence: &Fence,
) -> sqlx::query::Query<'_, Postgres, sqlx::postgres::PgArguments> {
    let (parts, epochs) = fence.columns();
    sqlx::query(trusted(sql))
        .bind(parts)
        .bind(epochs)
        .bind(fence.owner)
}

impl SettleSql for Postgres {
    async fn settle(
        connection: &mut PgConnection,
        names: &TableNames,
        fence: &Fence,
        batch: &Batch,
        keep: bool,
    ) -> Result<(), sqlx::Error> {
        if batch.only_done() {
            let forgetful = format!("(select {RELAXED_COMMIT}) = 'off'");
            done(connection, names, fence, &batch.done, keep, &forgetful).await?;
            return Ok(());
        }
        // Dropped before its commit, all of it is undone.
        let mut tx = connection.begin().await?;
        // A process that is frozen in the middle would keep others from its rows.
        let settings = format!(
            "select {RELAXED_COMMIT}, set_config('idle_in_transaction_session_timeout', '5s', true)"
        );
        sqlx::query(trusted(settings)).execute(&mut *tx).await?;
        // Who takes over waits for the end of this: it must see all that blocks, or nothing of it.
        if Self::lock_leases(&mut tx, names, fence).await?.is_empty() {
            return tx.rollback().await;
        }
        if !batch.done.is_empty() {
            done(&mut tx, names, fence, &batch.done, keep, "true").await?;
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

    async fn mark_transaction(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query("savepoint outbox_handler")
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn check_mark(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query("release savepoint outbox_handler")
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn complete_in_transaction(
        connection: &mut PgConnection,
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
        let ids = &[row.record_id];
        if !stored && done(connection, names, fence, ids, keep, "true").await? > 0 {
            return Ok(true);
        }
        if change(connection, names, fence, &batch).await? == 0 {
            return Ok(false);
        }
        finish(connection, names, ids, keep).await?;
        Ok(true)
    }

    async fn rename_handler(
        connection: &mut PgConnection,
        names: &TableNames,
        fence: &Fence,
        from: &str,
        to: &str,
    ) -> Result<(), sqlx::Error> {
        let (delivery, ours) = (names.table("delivery", '"'), self::fence(names));
        let sql = format!(
            "update {delivery} d set handler = $5
where d.handler = $4 and d.part = {ours} and not exists (
    select 1 from {delivery} e where e.record_id = d.record_id and e.handler = $5
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
        connection: &mut PgConnection,
        names: &TableNames,
        fence: &Fence,
        event: &str,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let (record, ours) = (names.table("record", '"'), self::fence(names));
        let sql = format!(
            "update {record} set status = 'pending' where id = any(array(
    select id from {record} where status = 'unhandled' and part = {ours} and event = $4 order by id limit $5
)) and status = 'unhandled'"
        );
        let done = fenced(sql, fence)
            .bind(event)
            .bind(limit)
            .execute(connection)
            .await?;
        Ok(done.rows_affected())
    }

    async fn configure(connection: &mut PgConnection, _settles: bool) -> Result<(), sqlx::Error> {
        // A plan that was made when the table was empty would be kept when it is full.
        sqlx::query("set plan_cache_mode = force_custom_plan")
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// The records of `$4`. As a subselect: the planner would weigh each id by itself, at each execution.
const IDS: &str = "id = any((select $4::bigint[])::bigint[])";

async fn done(
    connection: &mut PgConnection,
    names: &TableNames,
    fence: &Fence,
    ids: &[i64],
    keep: bool,
    condition: &str,
) -> Result<u64, sqlx::Error> {
    let (record, ours) = (names.table("record", '"'), self::fence(names));
    let change = if keep {
        format!("update {record} set status = 'completed', completed_at = clock_timestamp()")
    } else {
        format!("delete from {record}")
    };
    let sql = format!(
        "{change} where {IDS} and status in ('pending', 'scheduled') and part = {ours} and {condition}"
    );
    let done = fenced(sql, fence).bind(ids).execute(connection).await?;
    Ok(done.rows_affected())
}

async fn unhandled(
    connection: &mut PgConnection,
    names: &TableNames,
    fence: &Fence,
    ids: &[i64],
) -> Result<(), sqlx::Error> {
    let (record, ours) = (names.table("record", '"'), self::fence(names));
    let sql = format!(
        "update {record} set status = 'unhandled'
where {IDS} and status in ('pending', 'scheduled') and part = {ours}"
    );
    fenced(sql, fence).bind(ids).execute(connection).await?;
    Ok(())
}

/// Delivery rows for the handlers that did not finish, if the record is still as it was read.
async fn split(
    connection: &mut PgConnection,
    names: &TableNames,
    fence: &Fence,
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
    let ours = self::fence(names);
    let sql = format!(
        "with split as (
    update {record} set status = 'split'
    where {IDS} and status in ('pending', 'scheduled') and part = {ours} returning id
)
insert into {delivery} (record_id, part, key, handler, status, blocking, attempt, failure_count, first_failed_at,
    due_at, error, error_kind, fingerprint)
select u.record_id, u.part, u.key, u.handler, u.status, u.blocking, u.attempt, u.failure_count,
    timestamptz 'epoch' + u.first_failed_at * interval '1 microsecond',
    clock_timestamp() + u.delay * interval '1 microsecond', u.error, u.error_kind, u.fingerprint
from rows from (json_to_recordset($5::json) as (
    record_id bigint, part smallint, key text, handler text, status text, blocking boolean, attempt bigint,
    failure_count bigint, first_failed_at bigint, delay bigint, error text, error_kind text, fingerprint text
)) with ordinality as u (record_id, part, key, handler, status, blocking, attempt, failure_count, first_failed_at,
    delay, error, error_kind, fingerprint, place)
join split on split.id = u.record_id
order by u.place
on conflict (record_id, handler) do nothing"
    );
    fenced(sql, fence)
        .bind(&batch.split)
        .bind(json(&batch.split_rows)?)
        .execute(connection)
        .await?;
    Ok(())
}

/// Deliveries that are still as they were read become what they are to be.
async fn change(
    connection: &mut PgConnection,
    names: &TableNames,
    fence: &Fence,
    batch: &Batch,
) -> Result<u64, sqlx::Error> {
    let (delivery, ours) = (names.table("delivery", '"'), self::fence(names));
    let sql = format!(
        "update {delivery} d set
    status = u.status, blocking = u.blocking, attempt = u.attempt, failure_count = u.failure_count,
    first_failed_at = timestamptz 'epoch' + u.first_failed_at * interval '1 microsecond',
    due_at = clock_timestamp() + u.delay * interval '1 microsecond',
    finished_at = case when u.status = 'completed' then clock_timestamp() end,
    error = coalesce(u.error, d.error), error_kind = coalesce(u.error_kind, d.error_kind),
    fingerprint = coalesce(u.fingerprint, d.fingerprint)
from json_to_recordset($4::json) as u (
    record_id bigint, handler text, status text, blocking boolean, attempt bigint, failure_count bigint,
    first_failed_at bigint, delay bigint, was bigint, error text, error_kind text, fingerprint text
)
where d.record_id = u.record_id and d.handler = u.handler and d.attempt = u.was
    and d.status in ('waiting', 'retrying') and d.part = {ours}"
    );
    let done = fenced(sql, fence)
        .bind(json(&batch.changed)?)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

async fn remember(
    connection: &mut PgConnection,
    names: &TableNames,
    fence: &Fence,
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let (delivery, failure) = (names.table("delivery", '"'), names.table("failure", '"'));
    let ours = self::fence(names);
    let sql = format!(
        "insert into {failure} (record_id, handler, attempt, kind, fingerprint, error)
select d.record_id, d.handler, u.attempt, u.kind, u.fingerprint, u.error
from json_to_recordset($4::json) as u (
    record_id bigint, handler text, attempt bigint, kind text, fingerprint text, error text
)
join {delivery} d on d.record_id = u.record_id and d.handler = u.handler
where d.part = {ours}
on conflict do nothing"
    );
    let rows = json(&batch.failures)?;
    fenced(sql, fence)
        .bind(&rows)
        .execute(&mut *connection)
        .await?;
    if batch
        .failures
        .iter()
        .any(|row| row.attempt > MAX_FAILURES_KEPT)
    {
        let forget = format!(
            "delete from {failure} f using json_to_recordset($4::json) as u (
    record_id bigint, part smallint, handler text, attempt bigint
)
where f.record_id = u.record_id and f.handler = u.handler and f.attempt <= u.attempt - $5 and u.part = {ours}"
        );
        fenced(forget, fence)
            .bind(&rows)
            .bind(i64::from(MAX_FAILURES_KEPT))
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Split records are done when none of their deliveries is left.
async fn finish(
    connection: &mut PgConnection,
    names: &TableNames,
    ids: &[i64],
    keep: bool,
) -> Result<(), sqlx::Error> {
    let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
    // Two that end their deliveries of one record at the same time must see each other.
    let lock = trusted(format!(
        "select 1 from {record} where id = any($1) and status = 'split' order by id for update"
    ));
    sqlx::query(lock)
        .bind(ids)
        .execute(&mut *connection)
        .await?;
    let over = format!(
        "r.id = any($1) and r.status = 'split' and not exists (
    select 1 from {delivery} d where d.record_id = r.id and d.status in ('waiting', 'retrying', 'failed')
)"
    );
    if keep {
        let sql = trusted(format!(
            "update {record} r set status = 'completed', completed_at = clock_timestamp() where {over}"
        ));
        sqlx::query(sql).bind(ids).execute(connection).await?;
        return Ok(());
    }
    let failure = names.table("failure", '"');
    let sql = trusted(format!(
        "with gone as (delete from {record} r where {over} returning r.id),
    deliveries as (delete from {delivery} where record_id in (select id from gone))
delete from {failure} where record_id in (select id from gone)"
    ));
    sqlx::query(sql).bind(ids).execute(connection).await?;
    Ok(())
}
