//! Reports from SQLite.

use sqlx::{Sqlite, SqliteConnection};

use super::NOW;
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
    "r.id, r.event_id, r.event, r.key, r.status, r.created_at, r.due_at, r.completed_at";
/// The columns of `delivery`; `d` is the table.
const DELIVERY: &str = "d.id, d.handler, d.status, d.blocking, d.attempt, d.failure_count, d.first_failed_at, d.due_at,
    d.finished_at, d.error_kind, d.fingerprint, d.error";

/// What the query says of the record: `?1` the event, `?2` the key, `?3` the age.
fn of_record() -> String {
    format!(
        "(?1 is null or r.event = ?1) and (?2 is null or r.key = ?2)
    and (?3 is null or r.created_at <= {NOW} - ?3)"
    )
}

/// What it says of the delivery: `?4` the handler, `?5` the fingerprint.
const OF_DELIVERY: &str = "(?4 is null or d.handler = ?4) and (?5 is null or d.fingerprint = ?5)";

/// A statement that has the query's parameters, `?1` to `?7`.
fn with_query(
    sql: String,
    query: ListQuery<'_>,
) -> sqlx::query::Query<'_, Sqlite, sqlx::sqlite::SqliteArguments> {
    sqlx::query(trusted(sql))
        .bind(query.event)
        .bind(query.key)
        .bind(query.older_than)
        .bind(query.handler)
        .bind(query.fingerprint)
        .bind(query.after)
        .bind(query.limit)
}

/// The records that the query selects.
fn records(
    names: &TableNames,
    columns: &str,
    status: Option<RecordStatus>,
    query: ListQuery<'_>,
) -> String {
    let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
    let (of_record, (beyond, order)) = (of_record(), query.order());
    // In the text, so that the planner sees which index has it.
    let status = status.map_or_else(
        || "true".to_owned(),
        |status| format!("r.status = '{status}'"),
    );
    format!(
        "select {columns} from {record} r
where {status} and {of_record} and (?4 is null and ?5 is null or exists (
    select 1 from {delivery} d where d.record_id = r.id and {OF_DELIVERY}
)) and r.id {beyond} ?6
order by r.id {order} limit ?7"
    )
}

/// The deliveries that the query selects.
fn deliveries(
    names: &TableNames,
    columns: &str,
    status: DeliveryStatus,
    query: ListQuery<'_>,
) -> String {
    let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
    let (of_record, status) = (of_record(), status.as_str());
    let (beyond, order) = query.order();
    format!(
        "select {columns} from {delivery} d join {record} r on r.id = d.record_id
where d.status = '{status}' and {of_record} and {OF_DELIVERY} and d.id {beyond} ?6
order by d.id {order} limit ?7"
    )
}

impl ReportSql for Sqlite {
    async fn counts(
        connection: &mut SqliteConnection,
        names: &TableNames,
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
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
        connection: &mut SqliteConnection,
        names: &TableNames,
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
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
        connection: &mut SqliteConnection,
        names: &TableNames,
        limit: i64,
    ) -> Result<Vec<ErrorCount>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = trusted(format!(
            "select g.fingerprint, g.handler, d.error_kind, d.error, g.count, g.oldest, g.newest
from (
    select coalesce(fingerprint, '') as fingerprint, handler, count(*) as count, min(record_id) as oldest,
        max(record_id) as newest
    from {delivery} where status = 'failed' group by 1, 2
    order by 3 desc, 1, 2 limit ?1
) g
join {delivery} d on d.record_id = g.newest and d.handler = g.handler
order by g.count desc, g.fingerprint, g.handler"
        ));
        let rows = sqlx::query(sql).bind(limit).fetch_all(connection).await?;
        rows.iter().map(error_count).collect()
    }

    async fn oldest_pending(
        connection: &mut SqliteConnection,
        names: &TableNames,
        partitions: u16,
    ) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let record = names.table("record", '"');
        // The first of each partition: one step into the index for each, however many there are.
        let sql = trusted(format!(
            "with recursive p (part) as (select 0 union all select part + 1 from p where part + 1 < ?1)
select {NOW} - min(r.created_at), min(r.id) from p join {record} r on r.id = (
    select f.id from {record} f where f.part = p.part and f.status = 'pending' order by f.id limit 1
)"
        ));
        let (age, id): (Option<i64>, Option<i64>) = sqlx::query_as(sql)
            .bind(i32::from(partitions))
            .fetch_one(connection)
            .await?;
        Ok(age.zip(id))
    }

    async fn list_records(
        connection: &mut SqliteConnection,
        names: &TableNames,
        status: Option<RecordStatus>,
        query: ListQuery<'_>,
    ) -> Result<Vec<Listed>, sqlx::Error> {
        let sql = records(names, RECORD, status, query);
        let rows = with_query(sql, query).fetch_all(connection).await?;
        rows.iter().map(listed).collect()
    }

    async fn list_deliveries(
        connection: &mut SqliteConnection,
        names: &TableNames,
        status: DeliveryStatus,
        query: ListQuery<'_>,
    ) -> Result<Vec<Listed>, sqlx::Error> {
        let sql = deliveries(names, &format!("{RECORD}, {DELIVERY}"), status, query);
        let rows = with_query(sql, query).fetch_all(connection).await?;
        rows.iter().map(listed_delivery).collect()
    }

    async fn count(
        connection: &mut SqliteConnection,
        names: &TableNames,
        status: Option<Status>,
        query: ListQuery<'_>,
    ) -> Result<u64, sqlx::Error> {
        let selected = match status {
            Some(Status::Delivery(status)) => deliveries(names, "d.id", status, query),
            Some(Status::Record(status)) => records(names, "r.id", Some(status), query),
            None => records(names, "r.id", None, query),
        };
        let sql = format!("select count(*) from ({selected}) selected");
        let row = with_query(sql, query).fetch_one(connection).await?;
        row.count(0)
    }

    async fn inspect(
        connection: &mut SqliteConnection,
        names: &TableNames,
        record_id: i64,
    ) -> Result<Option<Inspected>, sqlx::Error> {
        let record = names.table("record", '"');
        let sql = trusted(format!(
            "select {RECORD}, r.version, r.payload, r.headers, r.max_retries from {record} r where r.id = ?1"
        ));
        let row = sqlx::query(sql)
            .bind(record_id)
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let mut found = inspected(&row)?;

        let table = names.table("delivery", '"');
        let sql = trusted(format!(
            "select {DELIVERY} from {table} d where d.record_id = ?1 order by d.id"
        ));
        let rows = sqlx::query(sql)
            .bind(record_id)
            .fetch_all(&mut *connection)
            .await?;
        found.deliveries = rows
            .iter()
            .map(|row| delivery(row, 0))
            .collect::<Result<_, _>>()?;

        let table = names.table("failure", '"');
        let sql = trusted(format!(
            "select f.handler, f.attempt, f.failed_at, f.kind, f.fingerprint, f.error
from {table} f where f.record_id = ?1 order by f.handler, f.attempt"
        ));
        let rows = sqlx::query(sql)
            .bind(record_id)
            .fetch_all(connection)
            .await?;
        found.failures = rows.iter().map(failure).collect::<Result<_, _>>()?;
        Ok(Some(found))
    }

    async fn blocked_lanes(
        connection: &mut SqliteConnection,
        names: &TableNames,
        status: Option<DeliveryStatus>,
        query: ListQuery<'_>,
    ) -> Result<Vec<BlockedLane>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let of_record = of_record();
        let status = status.map_or_else(
            || "d.status".to_owned(),
            |status| format!("'{}'", status.as_str()),
        );
        let sql = format!(
            "select d.key, d.handler, d.record_id, d.status, d.attempt, d.error, d.due_at - {NOW}, g.behind
from (
    select min(id) as head, count(*) - 1 as behind from {delivery} where blocking group by part, key, handler
) g
join {delivery} d on d.id = g.head
join {record} r on r.id = d.record_id
where d.status <> 'waiting' and d.status = {status} and {of_record} and {OF_DELIVERY} and d.id > ?6
order by g.behind desc, d.id limit ?7"
        );
        let rows = with_query(sql, query).fetch_all(connection).await?;
        rows.iter().map(blocked_lane).collect()
    }
}
