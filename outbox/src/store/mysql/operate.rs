//! Operations on MySQL.
//!
//! Every statement on given rows starts from them (`straight_join`) and finds each by its key:
//! nothing else is looked at, so nothing else is locked.

use sqlx::{MySql, MySqlConnection};

use crate::{
    operations::{DeliveryStatus, RecordStatus},
    store::{OperateSql, Prunable, TableNames, settle::json, trusted},
};

/// Ids that were given as JSON.
const IDS: &str = "json_table(?, '$[*]' columns (id bigint path '$')) u";

impl OperateSql for MySql {
    const BEGIN: &'static str = "begin";

    async fn record_status(
        connection: &mut MySqlConnection,
        names: &TableNames,
        record_id: i64,
    ) -> Result<Option<RecordStatus>, sqlx::Error> {
        let record = names.table("record", '`');
        let sql = trusted(format!("select status from {record} where id = ?"));
        let status: Option<String> = sqlx::query_scalar(sql)
            .bind(record_id)
            .fetch_optional(connection)
            .await?;
        status.as_deref().map(RecordStatus::stored).transpose()
    }

    async fn deliveries_of(
        connection: &mut MySqlConnection,
        names: &TableNames,
        record_id: i64,
        handler: Option<&str>,
    ) -> Result<Vec<(i64, DeliveryStatus)>, sqlx::Error> {
        let delivery = names.table("delivery", '`');
        let sql = trusted(format!(
            "select id, status from {delivery} where record_id = ? and handler = coalesce(?, handler) order by id"
        ));
        let rows: Vec<(i64, String)> = sqlx::query_as(sql)
            .bind(record_id)
            .bind(handler)
            .fetch_all(connection)
            .await?;
        rows.iter()
            .map(|(id, status)| Ok((*id, DeliveryStatus::stored(status)?)))
            .collect()
    }

    async fn replay(
        connection: &mut MySqlConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let delivery = names.table("delivery", '`');
        // Two statements: with a join, the order in which columns are set is not defined.
        let scheduled = format!(
            "update {IDS} straight_join {delivery} d on d.id = u.id set d.due_at = utc_timestamp(6)
where d.status = 'retrying'"
        );
        let failed = format!(
            "update {IDS} straight_join {delivery} d on d.id = u.id
set d.attempt = d.attempt + 1, d.failure_count = 0, d.first_failed_at = null, d.due_at = utc_timestamp(6),
    d.status = 'retrying'
where d.status = 'failed'"
        );
        Ok(changed(&mut *connection, scheduled, ids).await?
            + changed(connection, failed, ids).await?)
    }

    async fn bring_forward(
        connection: &mut MySqlConnection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let record = names.table("record", '`');
        let sql = format!(
            "update {IDS} straight_join {record} r on r.id = u.id set r.due_at = utc_timestamp(6)
where r.status = 'scheduled'"
        );
        changed(connection, sql, record_ids).await
    }

    async fn discard(
        connection: &mut MySqlConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let delivery = names.table("delivery", '`');
        let sql = format!(
            "update {IDS} straight_join {delivery} d on d.id = u.id
set d.status = 'discarded', d.blocking = false, d.due_at = null, d.finished_at = utc_timestamp(6)
where d.status in ('waiting', 'retrying', 'failed')"
        );
        changed(connection, sql, ids).await
    }

    async fn end_records(
        connection: &mut MySqlConnection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> Result<(), sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        // Two that end their deliveries of one record at the same time must see each other.
        let lock = format!(
            "select r.id from {IDS} straight_join {record} r on r.id = u.id where r.status = 'split' for update"
        );
        let split = found(&mut *connection, lock, record_ids).await?;
        // The first plain read of the transaction, so it sees all that was committed before the
        // lock was had; one that locks would wait for whoever waits for us.
        let open = format!(
            "select d.record_id from {IDS} straight_join {delivery} d on d.record_id = u.id
where d.status in ('waiting', 'retrying', 'failed')"
        );
        let open = found(&mut *connection, open, &split).await?;
        let over: Vec<i64> = split.into_iter().filter(|id| !open.contains(id)).collect();
        let sql = format!(
            "update {IDS} straight_join {record} r on r.id = u.id
set r.status = 'discarded', r.completed_at = utc_timestamp(6)"
        );
        changed(connection, sql, &over).await?;
        Ok(())
    }

    async fn promote(
        connection: &mut MySqlConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<(), sqlx::Error> {
        let delivery = names.table("delivery", '`');
        // Only those to be changed: to look at another one below would be to lock it, while its
        // owner may be waiting for ours.
        let heads = format!(
            "select e.id from {IDS} straight_join {delivery} d on d.id = u.id join {delivery} e on e.id = (
    select f.id from {delivery} f
    where f.blocking = true and f.part = d.part and f.`key` = d.`key` and f.handler = d.handler
    order by f.id limit 1
)
where e.status = 'waiting'"
        );
        let heads = found(&mut *connection, heads, ids).await?;
        let sql = format!(
            "update {IDS} straight_join {delivery} d on d.id = u.id
set d.status = 'retrying', d.due_at = utc_timestamp(6)
where d.status = 'waiting' and d.blocking = true"
        );
        changed(connection, sql, &heads).await?;
        Ok(())
    }

    async fn discard_records(
        connection: &mut MySqlConnection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let record = names.table("record", '`');
        let sql = format!(
            "update {IDS} straight_join {record} r on r.id = u.id
set r.status = 'discarded', r.completed_at = utc_timestamp(6)
where r.status in ('pending', 'scheduled', 'unhandled')"
        );
        changed(connection, sql, record_ids).await
    }

    async fn pause(
        connection: &mut MySqlConnection,
        names: &TableNames,
        handler: &str,
    ) -> Result<(), sqlx::Error> {
        let pause = names.table("pause", '`');
        let sql = trusted(format!(
            "insert ignore into {pause} (handler, paused_at) values (?, utc_timestamp(6))"
        ));
        sqlx::query(sql).bind(handler).execute(connection).await?;
        Ok(())
    }

    async fn resume(
        connection: &mut MySqlConnection,
        names: &TableNames,
        handler: &str,
    ) -> Result<bool, sqlx::Error> {
        let pause = names.table("pause", '`');
        let sql = trusted(format!("delete from {pause} where handler = ?"));
        let done = sqlx::query(sql).bind(handler).execute(connection).await?;
        Ok(done.rows_affected() > 0)
    }

    async fn prunable(
        connection: &mut MySqlConnection,
        names: &TableNames,
        after: i64,
        micros: i64,
        limit: i64,
    ) -> Result<Vec<Prunable>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let sql = trusted(format!(
            "select r.id, r.part,
    r.status in ('completed', 'discarded') and r.completed_at <= utc_timestamp(6) - interval ? microsecond and not exists (
        select 1 from {delivery} d where d.record_id = r.id and d.status in ('waiting', 'retrying', 'failed')
    ),
    r.created_at > utc_timestamp(6) - interval ? microsecond
from {record} r where r.id > ? order by r.id limit ?"
        ));
        let rows: Vec<(i64, i16, Option<bool>, bool)> = sqlx::query_as(sql)
            .bind(micros)
            .bind(micros)
            .bind(after)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        Ok(rows
            .into_iter()
            .map(|(id, part, over, young)| Prunable {
                id,
                part: part.cast_unsigned(),
                over: over.unwrap_or(false),
                young,
            })
            .collect())
    }

    async fn delete(
        connection: &mut MySqlConnection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let (record, delivery, failure) = (
            names.table("record", '`'),
            names.table("delivery", '`'),
            names.table("failure", '`'),
        );
        let over = "t.status in ('completed', 'discarded')";
        let deliveries = format!(
            "delete t from {IDS} straight_join {delivery} t on t.record_id = u.id where {over}"
        );
        changed(&mut *connection, deliveries, record_ids).await?;
        let failures =
            format!("delete t from {IDS} straight_join {failure} t on t.record_id = u.id");
        changed(&mut *connection, failures, record_ids).await?;
        let records =
            format!("delete t from {IDS} straight_join {record} t on t.id = u.id where {over}");
        changed(connection, records, record_ids).await
    }
}

/// How many rows a statement changed that takes a list of ids.
async fn changed(
    connection: &mut MySqlConnection,
    sql: String,
    ids: &[i64],
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(trusted(sql))
        .bind(json(ids)?)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

/// The ids that a statement finds that takes a list of ids.
async fn found(
    connection: &mut MySqlConnection,
    sql: String,
    ids: &[i64],
) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar(trusted(sql))
        .bind(json(ids)?)
        .fetch_all(connection)
        .await
}
