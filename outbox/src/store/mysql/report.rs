//! Reports from MySQL.

use sqlx::{MySql, MySqlConnection};

use crate::{
    operations::{
        BlockedLane, DeliveryStatus, ErrorCount, Inspected, Listed, RecordStatus, Status,
    },
    store::{
        ListQuery, ReportSql, StatusCount, TableNames,
        report::{
            Columns as _, blocked_lane, counted, delivery, error_count, failure, inspected, listed,
            listed_delivery,
        },
        trusted,
    },
};

/// The columns of `listed`; `r` is the table.
const RECORD: &str =
    "r.id, r.event_id, r.event, convert(r.`key` using utf8mb4), r.status, timestampdiff(microsecond, '1970-01-01', r.created_at),
    timestampdiff(microsecond, '1970-01-01', r.due_at), timestampdiff(microsecond, '1970-01-01', r.completed_at)";
/// The columns of `delivery`; `d` is the table.
const DELIVERY: &str = "d.id, d.handler, d.status, d.blocking, d.attempt, d.failure_count,
    timestampdiff(microsecond, '1970-01-01', d.first_failed_at), timestampdiff(microsecond, '1970-01-01', d.due_at),
    timestampdiff(microsecond, '1970-01-01', d.finished_at), d.error_kind, d.fingerprint, d.error";

/// What the query says of the record: the event, the key, the age.
const OF_RECORD: &str = "r.event = coalesce(?, r.event) and r.`key` = coalesce(?, r.`key`)
    and coalesce(r.created_at <= utc_timestamp(6) - interval ? microsecond, true)";
/// What it says of the delivery: the handler, the fingerprint.
const OF_DELIVERY: &str =
    "d.handler = coalesce(?, d.handler) and d.fingerprint <=> coalesce(?, d.fingerprint)";

/// A statement that has the query's parameters in this order: those of [`OF_RECORD`], those of
/// [`OF_DELIVERY`] if it has them, where to start, how many.
fn with_query(
    sql: String,
    query: ListQuery<'_>,
    of_delivery: bool,
) -> sqlx::query::Query<'_, MySql, sqlx::mysql::MySqlArguments> {
    let mut with = sqlx::query(trusted(sql))
        .bind(query.event)
        .bind(query.key.map(str::as_bytes))
        .bind(query.older_than);
    if of_delivery {
        with = with.bind(query.handler).bind(query.fingerprint);
    }
    with.bind(query.after).bind(query.limit)
}

/// The records that the query selects, and whether it says something of their deliveries.
fn records(
    names: &TableNames,
    columns: &str,
    status: Option<RecordStatus>,
    query: ListQuery<'_>,
) -> (String, bool) {
    let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
    let (beyond, order) = query.order();
    let status = status.map_or_else(
        || "true".to_owned(),
        |status| format!("r.status = '{status}'"),
    );
    let of_delivery = query.handler.is_some() || query.fingerprint.is_some();
    let has_delivery = if of_delivery {
        format!("exists (select 1 from {delivery} d where d.record_id = r.id and {OF_DELIVERY})")
    } else {
        "true".to_owned()
    };
    let sql = format!(
        "select {columns} from {record} r
where {status} and {OF_RECORD} and {has_delivery} and r.id {beyond} ?
order by r.id {order} limit ?"
    );
    (sql, of_delivery)
}

/// The deliveries that the query selects; it always says something of them.
fn deliveries(
    names: &TableNames,
    columns: &str,
    status: DeliveryStatus,
    query: ListQuery<'_>,
) -> (String, bool) {
    let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
    let (status, (beyond, order)) = (status.as_str(), query.order());
    let sql = format!(
        "select {columns} from {delivery} d join {record} r on r.id = d.record_id
where d.status = '{status}' and {OF_RECORD} and {OF_DELIVERY} and d.id {beyond} ?
order by d.id {order} limit ?"
    );
    (sql, true)
}

impl ReportSql for MySql {
    async fn counts(
        connection: &mut MySqlConnection,
        names: &TableNames,
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        // One by one, each from the index of its status.
        let sql = trusted(format!(
            "select false, status, null, count(*) from {record} group by status
union all select true, 'waiting', null, count(*) from {delivery} where status = 'waiting'
union all select true, 'retrying', null, count(*) from {delivery} where status = 'retrying'
union all select true, 'failed', null, count(*) from {delivery} where status = 'failed'"
        ));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn counts_by_event(
        connection: &mut MySqlConnection,
        names: &TableNames,
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let of_records = |status| {
            format!(
                "select false, '{status}', event, count(*) from {record} where status = '{status}' group by event"
            )
        };
        let of_deliveries = |status| {
            format!(
                "select true, '{status}', r.event, count(*) from {delivery} d join {record} r on r.id = d.record_id
where d.status = '{status}' group by r.event"
            )
        };
        let parts = [
            of_records("pending"),
            of_records("scheduled"),
            of_records("unhandled"),
            of_deliveries("waiting"),
            of_deliveries("retrying"),
            of_deliveries("failed"),
        ];
        let sql = trusted(parts.join("\nunion all "));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn counts_by_error(
        connection: &mut MySqlConnection,
        names: &TableNames,
        limit: i64,
    ) -> Result<Vec<ErrorCount>, sqlx::Error> {
        let delivery = names.table("delivery", '`');
        let sql = trusted(format!(
            "select g.fingerprint, g.handler, d.error_kind, d.error, g.count, g.oldest, g.newest
from (
    select coalesce(fingerprint, '') as fingerprint, handler, count(*) as count, min(record_id) as oldest,
        max(record_id) as newest
    from {delivery} where status = 'failed' group by 1, 2
    order by 3 desc, 1, 2 limit ?
) g
join {delivery} d on d.record_id = g.newest and d.handler = g.handler
order by g.count desc, g.fingerprint, g.handler"
        ));
        let rows = sqlx::query(sql).bind(limit).fetch_all(connection).await?;
        rows.iter().map(error_count).collect()
    }

    async fn oldest_pending(
        connection: &mut MySqlConnection,
        names: &TableNames,
        partitions: u16,
    ) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let (record, pending) = (names.table("record", '`'), names.plain("record_pending"));
        // The first of each partition: one step into the index for each, however many there are.
        let sql = trusted(format!(
            "with recursive p (part) as (select 0 union all select part + 1 from p where part + 1 < ?)
select timestampdiff(microsecond, min(r.created_at), utc_timestamp(6)), min(r.id) from (
    select (
        select f.id from {record} f force index ({pending})
        where f.status = 'pending' and f.part = p.part order by f.id limit 1
    ) as id from p
) oldest join {record} r on r.id = oldest.id"
        ));
        let (age, id): (Option<i64>, Option<i64>) = sqlx::query_as(sql)
            .bind(i32::from(partitions))
            .fetch_one(connection)
            .await?;
        Ok(age.zip(id))
    }

    async fn list_records(
        connection: &mut MySqlConnection,
        names: &TableNames,
        status: Option<RecordStatus>,
        query: ListQuery<'_>,
    ) -> Result<Vec<Listed>, sqlx::Error> {
        let (sql, of_delivery) = records(names, RECORD, status, query);
        let rows = with_query(sql, query, of_delivery)
            .fetch_all(connection)
            .await?;
        rows.iter().map(listed).collect()
    }

    async fn list_deliveries(
        connection: &mut MySqlConnection,
        names: &TableNames,
        status: DeliveryStatus,
        query: ListQuery<'_>,
    ) -> Result<Vec<Listed>, sqlx::Error> {
        let (sql, of_delivery) = deliveries(names, &format!("{RECORD}, {DELIVERY}"), status, query);
        let rows = with_query(sql, query, of_delivery)
            .fetch_all(connection)
            .await?;
        rows.iter().map(listed_delivery).collect()
    }

    async fn count(
        connection: &mut MySqlConnection,
        names: &TableNames,
        status: Option<Status>,
        query: ListQuery<'_>,
    ) -> Result<u64, sqlx::Error> {
        let (selected, of_delivery) = match status {
            Some(Status::Delivery(status)) => deliveries(names, "d.id", status, query),
            Some(Status::Record(status)) => records(names, "r.id", Some(status), query),
            None => records(names, "r.id", None, query),
        };
        let sql = format!("select count(*) from ({selected}) selected");
        let row = with_query(sql, query, of_delivery)
            .fetch_one(connection)
            .await?;
        row.count(0)
    }

    async fn inspect(
        connection: &mut MySqlConnection,
        names: &TableNames,
        record_id: i64,
    ) -> Result<Option<Inspected>, sqlx::Error> {
        let record = names.table("record", '`');
        let sql = trusted(format!(
            "select {RECORD}, r.version, r.payload, r.headers, r.max_retries from {record} r where r.id = ?"
        ));
        let row = sqlx::query(sql)
            .bind(record_id)
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let mut found = inspected(&row)?;

        let table = names.table("delivery", '`');
        let sql = trusted(format!(
            "select {DELIVERY} from {table} d where d.record_id = ? order by d.id"
        ));
        let rows = sqlx::query(sql)
            .bind(record_id)
            .fetch_all(&mut *connection)
            .await?;
        found.deliveries = rows
            .iter()
            .map(|row| delivery(row, 0))
            .collect::<Result<_, _>>()?;

        let table = names.table("failure", '`');
        let sql = trusted(format!(
            "select f.handler, f.attempt, timestampdiff(microsecond, '1970-01-01', f.failed_at), f.kind, f.fingerprint, f.error
from {table} f where f.record_id = ? order by f.handler, f.attempt"
        ));
        let rows = sqlx::query(sql)
            .bind(record_id)
            .fetch_all(connection)
            .await?;
        found.failures = rows.iter().map(failure).collect::<Result<_, _>>()?;
        Ok(Some(found))
    }

    async fn blocked_lanes(
        connection: &mut MySqlConnection,
        names: &TableNames,
        status: Option<DeliveryStatus>,
        query: ListQuery<'_>,
    ) -> Result<Vec<BlockedLane>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let status = status.map_or_else(
            || "d.status".to_owned(),
            |status| format!("'{}'", status.as_str()),
        );
        let sql = format!(
            "select convert(d.`key` using utf8mb4), d.handler, d.record_id, d.status, d.attempt, d.error, timestampdiff(microsecond, utc_timestamp(6), d.due_at), g.behind
from (
    select min(id) as head, count(*) - 1 as behind from {delivery} where blocking = true group by part, `key`, handler
) g
join {delivery} d on d.id = g.head
join {record} r on r.id = d.record_id
where d.status <> 'waiting' and d.status = {status} and {OF_RECORD} and {OF_DELIVERY} and d.id > ?
order by g.behind desc, d.id limit ?"
        );
        let rows = with_query(sql, query, true).fetch_all(connection).await?;
        rows.iter().map(blocked_lane).collect()
    }
}
