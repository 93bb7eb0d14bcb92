//! Reports from PostgreSQL.

use sqlx::{PgConnection, Postgres};

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

/// Microseconds since 1970.
fn micros(time: &str) -> String {
    format!("(extract(epoch from {time}) * 1000000)::bigint")
}

/// The columns of `listed`; `r` is the table.
fn record_columns() -> String {
    let (created, due, completed) = (
        micros("r.created_at"),
        micros("r.due_at"),
        micros("r.completed_at"),
    );
    format!("r.id, r.event_id, r.event, r.key, r.status, {created}, {due}, {completed}")
}

/// The columns of `delivery`; `d` is the table.
fn delivery_columns() -> String {
    let (first_failed, due, finished) = (
        micros("d.first_failed_at"),
        micros("d.due_at"),
        micros("d.finished_at"),
    );
    format!(
        "d.id, d.handler, d.status, d.blocking, d.attempt, d.failure_count, {first_failed}, {due}, {finished},
    d.error_kind, d.fingerprint, d.error"
    )
}

/// What the query says of the record: `$1` the event, `$2` the key, `$3` the age.
const OF_RECORD: &str = "($1::text is null or r.event = $1) and ($2::text is null or r.key = $2)
    and ($3::bigint is null or r.created_at <= clock_timestamp() - $3 * interval '1 microsecond')";
/// What it says of the delivery: `$4` the handler, `$5` the fingerprint.
const OF_DELIVERY: &str =
    "($4::text is null or d.handler = $4) and ($5::text is null or d.fingerprint = $5)";

/// A statement that has the query's parameters, `$1` to `$7`.
fn with_query(
    sql: String,
    query: ListQuery<'_>,
) -> sqlx::query::Query<'_, Postgres, sqlx::postgres::PgArguments> {
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
    let (beyond, order) = query.order();
    // In the text, so that the planner sees which index has it.
    let status = status.map_or_else(
        || "true".to_owned(),
        |status| format!("r.status = '{status}'"),
    );
    format!(
        "select {columns} from {record} r
where {status} and {OF_RECORD} and ($4::text is null and $5::text is null or exists (
    select 1 from {delivery} d where d.record_id = r.id and {OF_DELIVERY}
)) and r.id {beyond} $6
order by r.id {order} limit $7"
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
    let (status, (beyond, order)) = (status.as_str(), query.order());
    format!(
        "select {columns} from {delivery} d join {record} r on r.id = d.record_id
where d.status = '{status}' and {OF_RECORD} and {OF_DELIVERY} and d.id {beyond} $6
order by d.id {order} limit $7"
    )
}

impl ReportSql for Postgres {
    async fn counts(
        connection: &mut PgConnection,
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
        connection: &mut PgConnection,
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
        connection: &mut PgConnection,
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
    order by 3 desc, 1, 2 limit $1
) g
join {delivery} d on d.record_id = g.newest and d.handler = g.handler
order by g.count desc, g.fingerprint, g.handler"
        ));
        let rows = sqlx::query(sql).bind(limit).fetch_all(connection).await?;
        rows.iter().map(error_count).collect()
    }

    async fn oldest_pending(
        connection: &mut PgConnection,
        names: &TableNames,
        partitions: u16,
    ) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let record = names.table("record", '"');
        // The first of each partition: one step into the index for each, however many there are.
        let age = micros("clock_timestamp() - min(oldest.created_at)");
        let sql = trusted(format!(
            "with recursive p (part) as (select 0 union all select part + 1 from p where part + 1 < $1)
select {age}, min(oldest.id) from p cross join lateral (
    select r.created_at, r.id from {record} r
    where r.status = 'pending' and r.part >= p.part and r.part <= p.part order by r.part, r.id limit 1
) oldest"
        ));
        let (age, id): (Option<i64>, Option<i64>) = sqlx::query_as(sql)
            .bind(i32::from(partitions))
            .fetch_one(connection)
            .await?;
        Ok(age.zip(id))
    }

    async fn list_records(
        connection: &mut PgConnection,
        names: &TableNames,
        status: Option<RecordStatus>,
        query: ListQuery<'_>,
    ) -> Result<Vec<Listed>, sqlx::Error> {
        let sql = records(names, &record_columns(), status, query);
        let rows = with_query(sql, query).fetch_all(connection).await?;
        rows.iter().map(listed).collect()
    }

    async fn list_deliveries(
        connection: &mut PgConnection,
        names: &TableNames,
        status: DeliveryStatus,
        query: ListQuery<'_>,
    ) -> Result<Vec<Listed>, sqlx::Error> {
        let columns = format!("{}, {}", record_columns(), delivery_columns());
        let sql = deliveries(names, &columns, status, query);
        let rows = with_query(sql, query).fetch_all(connection).await?;
        rows.iter().map(listed_delivery).collect()
    }

    async fn count(
        connection: &mut PgConnection,
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
        connection: &mut PgConnection,
        names: &TableNames,
        record_id: i64,
    ) -> Result<Option<Inspected>, sqlx::Error> {
        let record = names.table("record", '"');
        let columns = record_columns();
        let sql = trusted(format!(
            "select {columns}, r.version, r.payload, r.headers, r.max_retries from {record} r where r.id = $1"
        ));
        let row = sqlx::query(sql)
            .bind(record_id)
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let mut found = inspected(&row)?;

        let (table, columns) = (names.table("delivery", '"'), delivery_columns());
        let sql = trusted(format!(
            "select {columns} from {table} d where d.record_id = $1 order by d.id"
        ));
        let rows = sqlx::query(sql)
            .bind(record_id)
            .fetch_all(&mut *connection)
            .await?;
        found.deliveries = rows
            .iter()
            .map(|row| delivery(row, 0))
            .collect::<Result<_, _>>()?;

        let (table, failed) = (names.table("failure", '"'), micros("f.failed_at"));
        let sql = trusted(format!(
            "select f.handler, f.attempt, {failed}, f.kind, f.fingerprint, f.error
from {table} f where f.record_id = $1 order by f.handler, f.attempt"
        ));
        let rows = sqlx::query(sql)
            .bind(record_id)
            .fetch_all(connection)
            .await?;
        found.failures = rows.iter().map(failure).collect::<Result<_, _>>()?;
        Ok(Some(found))
    }

    async fn blocked_lanes(
        connection: &mut PgConnection,
        names: &TableNames,
        status: Option<DeliveryStatus>,
        query: ListQuery<'_>,
    ) -> Result<Vec<BlockedLane>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let until_due = micros("d.due_at - clock_timestamp()");
        let status = status.map_or_else(
            || "d.status".to_owned(),
            |status| format!("'{}'", status.as_str()),
        );
        let sql = format!(
            "select d.key, d.handler, d.record_id, d.status, d.attempt, d.error, {until_due}, g.behind
from (
    select min(id) as head, count(*) - 1 as behind from {delivery} where blocking group by part, key, handler
) g
join {delivery} d on d.id = g.head
join {record} r on r.id = d.record_id
where d.status <> 'waiting' and d.status = {status} and {OF_RECORD} and {OF_DELIVERY} and d.id > $6
order by g.behind desc, d.id limit $7"
        );
        let rows = with_query(sql, query).fetch_all(connection).await?;
        rows.iter().map(blocked_lane).collect()
    }
}
