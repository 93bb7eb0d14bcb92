//! Writing to MySQL what became of records.
//!
//! Every statement on given rows starts from them (`straight_join`) and finds each by its key:
//! nothing else is looked at, so nothing else is locked. With `force index`, since a small table
//! is read as a whole otherwise, and a row that another transaction has just inserted is waited
//! for. They come in the order of their ids, so that two of us do not wait for each other.

use std::collections::BTreeSet;

use sqlx::{
    Connection as _, MySql, MySqlConnection, Row as _, mysql::MySqlArguments, query::Query,
};

use super::places;
use crate::store::{
    Batch, DeliveryRow, Fence, SettleSql, TableNames,
    settle::{MAX_FAILURES_KEPT, json},
    trusted,
};

/// Ids that were given as JSON.
const IDS: &str = "json_table(?, '$[*]' columns (id bigint path '$')) u";

/// The partitions that are still ours. They stay so until the transaction ends: whoever wants to
/// take one finds it locked.
async fn ours(
    connection: &mut MySqlConnection,
    names: &TableNames,
    fence: &Fence,
) -> Result<Vec<i16>, sqlx::Error> {
    let lease = names.table("lease", '`');
    let sql = trusted(format!(
        "select l.part from json_table(?, '$[*]' columns (part smallint path '$[0]', epoch bigint path '$[1]')) f
straight_join {lease} l force index (primary) on l.part = f.part
where l.epoch = f.epoch and l.owner = ? lock in share mode"
    ));
    sqlx::query_scalar(sql)
        .bind(fence.json())
        .bind(fence.owner)
        .fetch_all(connection)
        .await
}

/// A statement on given rows, the last parameters of which are the partitions that are ours.
fn guarded(sql: String, rows: String, ours: &[i16]) -> Query<'static, MySql, MySqlArguments> {
    let mut query = sqlx::query(trusted(sql)).bind(rows);
    for part in ours {
        query = query.bind(*part);
    }
    query
}

fn in_order(ids: impl IntoIterator<Item = i64>) -> BTreeSet<i64> {
    ids.into_iter().collect()
}

impl SettleSql for MySql {
    async fn settle(
        connection: &mut MySqlConnection,
        names: &TableNames,
        fence: &Fence,
        batch: &Batch,
        keep: bool,
    ) -> Result<(), sqlx::Error> {
        // Dropped before its commit, all of it is undone.
        let mut tx = connection.begin().await?;
        let ours = ours(&mut tx, names, fence).await?;
        if ours.is_empty() {
            return tx.rollback().await;
        }
        if !batch.done.is_empty() {
            done(&mut tx, names, &ours, &batch.done, keep).await?;
        }
        if !batch.unhandled.is_empty() {
            unhandled(&mut tx, names, &ours, &batch.unhandled).await?;
        }
        if !batch.split.is_empty() {
            split(&mut tx, names, &ours, batch).await?;
        }
        if !batch.changed.is_empty() {
            change(&mut tx, names, &ours, batch).await?;
        }
        if !batch.failures.is_empty() {
            remember(&mut tx, names, &ours, batch).await?;
        }
        let ended = batch.ended();
        if !ended.is_empty() {
            finish(&mut tx, names, &ended, keep).await?;
        }
        tx.commit().await
    }

    async fn mark_transaction(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        sqlx::query("savepoint outbox_handler")
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn check_mark(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        sqlx::query("release savepoint outbox_handler")
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn complete_in_transaction(
        connection: &mut MySqlConnection,
        names: &TableNames,
        fence: &Fence,
        row: &DeliveryRow,
        stored: bool,
        keep: bool,
    ) -> Result<bool, sqlx::Error> {
        let ours = ours(connection, names, fence).await?;
        if ours.is_empty() {
            return Ok(false);
        }
        let batch = Batch {
            changed: vec![row.clone()],
            ..Batch::default()
        };
        if !stored && done(connection, names, &ours, &[row.record_id], keep).await? > 0 {
            return Ok(true);
        }
        if change(connection, names, &ours, &batch).await? == 0 {
            return Ok(false);
        }
        finish(connection, names, &[row.record_id], keep).await?;
        Ok(true)
    }

    async fn rename_handler(
        connection: &mut MySqlConnection,
        names: &TableNames,
        fence: &Fence,
        from: &str,
        to: &str,
    ) -> Result<(), sqlx::Error> {
        let delivery = names.table("delivery", '`');
        let mut tx = connection.begin().await?;
        let ours = ours(&mut tx, names, fence).await?;
        let sql = trusted(format!(
            "update {delivery} d left join {delivery} e on e.record_id = d.record_id and e.handler = ?
set d.handler = ?
where d.handler = ? and e.id is null and d.part in ({})",
            places(ours.len())
        ));
        let mut query = sqlx::query(sql).bind(to).bind(to).bind(from);
        for part in &ours {
            query = query.bind(part);
        }
        query.execute(&mut *tx).await?;
        tx.commit().await
    }

    async fn requeue_unhandled(
        connection: &mut MySqlConnection,
        names: &TableNames,
        fence: &Fence,
        event: &str,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let record = names.table("record", '`');
        let mut tx = connection.begin().await?;
        let ours = ours(&mut tx, names, fence).await?;
        let sql = trusted(format!(
            "update {record} set status = 'pending'
where status = 'unhandled' and event = ? and part in ({}) order by id limit ?",
            places(ours.len())
        ));
        let mut query = sqlx::query(sql).bind(event);
        for part in &ours {
            query = query.bind(part);
        }
        let done = query.bind(limit).execute(&mut *tx).await?;
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

/// A process that is frozen in the middle of a transaction would keep others from what is locked
/// in it. MariaDB ends such a session after this many seconds; MySQL itself cannot, and reads a
/// comment here.
pub(super) async fn limit_idle_transactions(
    connection: &mut MySqlConnection,
) -> Result<(), sqlx::Error> {
    sqlx::query("set @outbox = 0 /*M!100300 , session idle_transaction_timeout = 5 */")
        .execute(connection)
        .await?;
    Ok(())
}

/// The condition on records `r` of a batch: still ours and as they were read.
fn as_read(ours: &[i16]) -> String {
    let ours = places(ours.len());
    format!("r.status in ('pending', 'scheduled') and r.part in ({ours})")
}

async fn done(
    connection: &mut MySqlConnection,
    names: &TableNames,
    ours: &[i16],
    ids: &[i64],
    keep: bool,
) -> Result<u64, sqlx::Error> {
    let (record, as_read) = (names.table("record", '`'), as_read(ours));
    let sql = if keep {
        format!(
            "update {IDS} straight_join {record} r force index (primary) on r.id = u.id
set r.status = 'completed', r.completed_at = utc_timestamp(6) where {as_read}"
        )
    } else {
        format!(
            "delete r from {IDS} straight_join {record} r force index (primary) on r.id = u.id where {as_read}"
        )
    };
    let ids = in_order(ids.iter().copied());
    let done = guarded(sql, json(&ids)?, ours).execute(connection).await?;
    Ok(done.rows_affected())
}

async fn unhandled(
    connection: &mut MySqlConnection,
    names: &TableNames,
    ours: &[i16],
    ids: &[i64],
) -> Result<(), sqlx::Error> {
    let (record, as_read) = (names.table("record", '`'), as_read(ours));
    let sql = format!(
        "update {IDS} straight_join {record} r force index (primary) on r.id = u.id set r.status = 'unhandled' where {as_read}"
    );
    let ids = in_order(ids.iter().copied());
    guarded(sql, json(&ids)?, ours).execute(connection).await?;
    Ok(())
}

/// Delivery rows for the handlers that did not finish, if the record is still as it was read.
async fn split(
    connection: &mut MySqlConnection,
    names: &TableNames,
    ours: &[i16],
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
    let as_read = as_read(ours);
    let sql = format!(
        "select r.id from {IDS} straight_join {record} r force index (primary) on r.id = u.id where {as_read} for update"
    );
    let ids = in_order(batch.split.iter().copied());
    let found = guarded(sql, json(&ids)?, ours)
        .fetch_all(&mut *connection)
        .await?;
    let split = found
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<BTreeSet<i64>, _>>()?;
    let sql = trusted(format!(
        "update {IDS} straight_join {record} r force index (primary) on r.id = u.id set r.status = 'split'"
    ));
    sqlx::query(sql)
        .bind(json(&split)?)
        .execute(&mut *connection)
        .await?;
    let rows: Vec<&DeliveryRow> = batch
        .split_rows
        .iter()
        .filter(|row| split.contains(&row.record_id))
        .collect();
    let sql = trusted(format!(
        "insert ignore into {delivery} (record_id, part, `key`, handler, status, blocking, attempt, failure_count,
    first_failed_at, due_at, error, error_kind, fingerprint)
select u.record_id, u.part, u.record_key, u.handler, u.status, u.blocking, u.attempt, u.failure_count,
    timestamp('1970-01-01') + interval u.first_failed_at microsecond,
    utc_timestamp(6) + interval u.delay microsecond, u.error, u.error_kind, u.fingerprint
from {DELIVERIES} order by u.place"
    ));
    sqlx::query(sql)
        .bind(json(&rows)?)
        .execute(connection)
        .await?;
    Ok(())
}

/// Deliveries that were given as JSON. The types of numbers are those of the columns.
const DELIVERIES: &str = "json_table(?, '$[*]' columns (
    place for ordinality,
    record_id bigint path '$.record_id',
    part smallint path '$.part',
    record_key varchar(255) character set utf8mb4 path '$.key',
    handler varchar(255) character set utf8mb4 path '$.handler',
    status varchar(20) character set utf8mb4 path '$.status',
    blocking boolean path '$.blocking',
    attempt bigint path '$.attempt',
    failure_count bigint path '$.failure_count',
    first_failed_at bigint path '$.first_failed_at',
    delay bigint path '$.delay',
    was bigint path '$.was',
    error longtext character set utf8mb4 path '$.error',
    error_kind varchar(255) character set utf8mb4 path '$.error_kind',
    fingerprint varchar(255) character set utf8mb4 path '$.fingerprint'
)) u";

/// Deliveries that are still as they were read become what they are to be.
async fn change(
    connection: &mut MySqlConnection,
    names: &TableNames,
    ours: &[i16],
    batch: &Batch,
) -> Result<u64, sqlx::Error> {
    let delivery = names.table("delivery", '`');
    let sql = format!(
        "update {DELIVERIES} straight_join {delivery} d force index (record_id) on d.record_id = u.record_id and d.handler = u.handler
set d.status = u.status, d.blocking = u.blocking, d.attempt = u.attempt, d.failure_count = u.failure_count,
    d.first_failed_at = timestamp('1970-01-01') + interval u.first_failed_at microsecond,
    d.due_at = utc_timestamp(6) + interval u.delay microsecond,
    d.finished_at = if(u.status = 'completed', utc_timestamp(6), null),
    d.error = coalesce(u.error, d.error), d.error_kind = coalesce(u.error_kind, d.error_kind),
    d.fingerprint = coalesce(u.fingerprint, d.fingerprint)
where d.attempt = u.was and d.status in ('waiting', 'retrying') and d.part in ({})",
        places(ours.len())
    );
    let mut rows: Vec<&DeliveryRow> = batch.changed.iter().collect();
    rows.sort_by_key(|row| (row.record_id, row.handler));
    let done = guarded(sql, json(&rows)?, ours).execute(connection).await?;
    Ok(done.rows_affected())
}

async fn remember(
    connection: &mut MySqlConnection,
    names: &TableNames,
    ours: &[i16],
    batch: &Batch,
) -> Result<(), sqlx::Error> {
    let (delivery, failure) = (names.table("delivery", '`'), names.table("failure", '`'));
    let ours_too = places(ours.len());
    let given = "json_table(?, '$[*]' columns (
    record_id bigint path '$.record_id',
    part smallint path '$.part',
    handler varchar(255) character set utf8mb4 path '$.handler',
    attempt bigint path '$.attempt',
    kind varchar(255) character set utf8mb4 path '$.kind',
    fingerprint varchar(255) character set utf8mb4 path '$.fingerprint',
    error longtext character set utf8mb4 path '$.error'
)) u";
    let sql = format!(
        "insert ignore into {failure} (record_id, handler, attempt, failed_at, kind, fingerprint, error)
select d.record_id, d.handler, u.attempt, utc_timestamp(6), u.kind, u.fingerprint, u.error
from {given} straight_join {delivery} d force index (record_id) on d.record_id = u.record_id and d.handler = u.handler
where d.part in ({ours_too})"
    );
    let rows = json(&batch.failures)?;
    guarded(sql, rows.clone(), ours)
        .execute(&mut *connection)
        .await?;
    if batch
        .failures
        .iter()
        .any(|row| row.attempt > MAX_FAILURES_KEPT)
    {
        let forget = format!(
            "delete f from {given} straight_join {failure} f force index (primary) on f.record_id = u.record_id and f.handler = u.handler
where u.part in ({ours_too}) and f.attempt <= u.attempt - ?"
        );
        guarded(forget, rows, ours)
            .bind(i64::from(MAX_FAILURES_KEPT))
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Split records are done when none of their deliveries is left.
async fn finish(
    connection: &mut MySqlConnection,
    names: &TableNames,
    ids: &[i64],
    keep: bool,
) -> Result<(), sqlx::Error> {
    let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
    // Two that end their deliveries of one record at the same time must see each other.
    let lock = trusted(format!(
        "select r.id from {IDS} straight_join {record} r force index (primary) on r.id = u.id where r.status = 'split' for update"
    ));
    let split: Vec<i64> = sqlx::query_scalar(lock)
        .bind(json(ids)?)
        .fetch_all(&mut *connection)
        .await?;
    // The first plain read of this transaction: after the lock, so it sees what the others that
    // had it wrote. A locking one would wait for those that wait for our lock.
    let open = trusted(format!(
        "select d.record_id from {IDS} straight_join {delivery} d force index (record_id) on d.record_id = u.id
where d.status in ('waiting', 'retrying', 'failed')"
    ));
    let open: Vec<i64> = sqlx::query_scalar(open)
        .bind(json(&split)?)
        .fetch_all(&mut *connection)
        .await?;
    let open = in_order(open);
    let over: Vec<i64> = split.into_iter().filter(|id| !open.contains(id)).collect();
    let over = json(&over)?;
    if keep {
        let sql = trusted(format!(
            "update {IDS} straight_join {record} r force index (primary) on r.id = u.id
set r.status = 'completed', r.completed_at = utc_timestamp(6)"
        ));
        sqlx::query(sql).bind(over).execute(connection).await?;
        return Ok(());
    }
    let failure = names.table("failure", '`');
    for (table, id, index) in [
        (record, "id", "primary"),
        (delivery, "record_id", "record_id"),
        (failure, "record_id", "primary"),
    ] {
        let sql = trusted(format!(
            "delete t from {IDS} straight_join {table} t force index ({index}) on t.{id} = u.id"
        ));
        sqlx::query(sql)
            .bind(&over)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
