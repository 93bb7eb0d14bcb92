//! Operations on PostgreSQL.

use sqlx::{PgConnection, Postgres};

use super::delivery::lane_in_order;

use crate::{
    operations::{DeliveryStatus, RecordStatus},
    store::{OperateSql, Prunable, TableNames, trusted},
};

impl OperateSql for Postgres {
    const BEGIN: &'static str = "begin";

    async fn record_status(
        connection: &mut PgConnection,
        names: &TableNames,
        record_id: i64,
    ) -> Result<Option<RecordStatus>, sqlx::Error> {
        let record = names.table("record", '"');
        let sql = trusted(format!("select status from {record} where id = $1"));
        let status: Option<String> = sqlx::query_scalar(sql)
            .bind(record_id)
            .fetch_optional(connection)
            .await?;
        status.as_deref().map(RecordStatus::stored).transpose()
    }

    async fn deliveries_of(
        connection: &mut PgConnection,
        names: &TableNames,
        record_id: i64,
        handler: Option<&str>,
    ) -> Result<Vec<(i64, DeliveryStatus)>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = trusted(format!(
            "select id, status from {delivery} where record_id = $1 and ($2::text is null or handler = $2) order by id"
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
        connection: &mut PgConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = format!(
            "update {delivery} set
    attempt = case when status = 'failed' then attempt + 1 else attempt end,
    failure_count = case when status = 'failed' then 0 else failure_count end,
    first_failed_at = case when status = 'failed' then null else first_failed_at end,
    due_at = clock_timestamp(), status = 'retrying'
where id = any($1) and status in ('failed', 'retrying')"
        );
        changed(connection, sql, ids).await
    }

    async fn bring_forward(
        connection: &mut PgConnection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let record = names.table("record", '"');
        let sql = format!(
            "update {record} set due_at = clock_timestamp() where id = any($1) and status = 'scheduled'"
        );
        changed(connection, sql, record_ids).await
    }

    async fn discard(
        connection: &mut PgConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = format!(
            "update {delivery} set status = 'discarded', blocking = false, due_at = null, finished_at = clock_timestamp()
where id = any($1) and status in ('waiting', 'retrying', 'failed')"
        );
        changed(connection, sql, ids).await
    }

    async fn end_records(
        connection: &mut PgConnection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> Result<(), sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        // Two that end their deliveries of one record at the same time must see each other.
        let lock = format!(
            "select 1 from {record} where id = any($1) and status = 'split' order by id for update"
        );
        changed(connection, lock, record_ids).await?;
        let sql = format!(
            "update {record} r set status = 'discarded', completed_at = clock_timestamp()
where r.id = any($1) and r.status = 'split' and not exists (
    select 1 from {delivery} d where d.record_id = r.id and d.status in ('waiting', 'retrying', 'failed')
)"
        );
        changed(connection, sql, record_ids).await?;
        Ok(())
    }

    async fn promote(
        connection: &mut PgConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<(), sqlx::Error> {
        let (delivery, of_lane) = (names.table("delivery", '"'), lane_in_order("e", "d"));
        let sql = format!(
            "update {delivery} set status = 'retrying', due_at = clock_timestamp()
where status = 'waiting' and blocking and id = any(array(
    select (
        select e.id from {delivery} e where {of_lane} limit 1
    ) from {delivery} d where d.id = any($1)
))"
        );
        changed(connection, sql, ids).await?;
        Ok(())
    }

    async fn discard_records(
        connection: &mut PgConnection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let record = names.table("record", '"');
        let sql = format!(
            "update {record} set status = 'discarded', completed_at = clock_timestamp()
where id = any($1) and status in ('pending', 'scheduled', 'unhandled')"
        );
        changed(connection, sql, record_ids).await
    }

    async fn pause(
        connection: &mut PgConnection,
        names: &TableNames,
        handler: &str,
    ) -> Result<(), sqlx::Error> {
        let pause = names.table("pause", '"');
        let sql = trusted(format!(
            "insert into {pause} (handler) values ($1) on conflict do nothing"
        ));
        sqlx::query(sql).bind(handler).execute(connection).await?;
        Ok(())
    }

    async fn resume(
        connection: &mut PgConnection,
        names: &TableNames,
        handler: &str,
    ) -> Result<bool, sqlx::Error> {
        let pause = names.table("pause", '"');
        let sql = trusted(format!("delete from {pause} where handler = $1"));
        let done = sqlx::query(sql).bind(handler).execute(connection).await?;
        Ok(done.rows_affected() > 0)
    }

    async fn prunable(
        connection: &mut PgConnection,
        names: &TableNames,
        after: i64,
        micros: i64,
        limit: i64,
    ) -> Result<Vec<Prunable>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        // `count`: with `not exists` the planner may read all deliveries, for each batch.
        let sql = trusted(format!(
            "select r.id, r.part,
    r.status in ('completed', 'discarded') and r.completed_at <= now.past and 0 = (
        select count(*) from {delivery} d where d.record_id = r.id and d.status in ('waiting', 'retrying', 'failed')
    ),
    r.created_at > now.past
from {record} r cross join (select clock_timestamp() - $2 * interval '1 microsecond' as past) now
where r.id > $1 order by r.id limit $3"
        ));
        let rows: Vec<(i64, i16, Option<bool>, bool)> = sqlx::query_as(sql)
            .bind(after)
            .bind(micros)
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
        connection: &mut PgConnection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        let (record, delivery, failure) = (
            names.table("record", '"'),
            names.table("delivery", '"'),
            names.table("failure", '"'),
        );
        let over = "status in ('completed', 'discarded')";
        let deliveries = format!("delete from {delivery} where record_id = any($1) and {over}");
        changed(&mut *connection, deliveries, record_ids).await?;
        let failures = format!("delete from {failure} where record_id = any($1)");
        changed(&mut *connection, failures, record_ids).await?;
        let records = format!("delete from {record} where id = any($1) and {over}");
        changed(connection, records, record_ids).await
    }
}

/// How many rows a statement changed that takes a list of ids.
async fn changed(
    connection: &mut PgConnection,
    sql: String,
    ids: &[i64],
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(trusted(sql))
        .bind(ids)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}
