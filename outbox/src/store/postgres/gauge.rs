//! Gauges of PostgreSQL.

use sqlx::{Connection as _, PgConnection, Postgres, postgres::PgRow};

use crate::{
    operations::{ErrorCount, Instance},
    store::{
        CappedCount, GaugeSql, SampleExtent, StatusCount, StatusSample, Table, TableNames,
        gauge::{
            IndexPath, capped, capped_count, capped_counts, errors_of, events_of, instance,
            open_counts,
        },
        report::{counted, error_count},
        trusted,
    },
};

/// The order of the status's own index, so that it is read and nothing else, whatever the planner
/// believes to know.
fn path(_: &TableNames) -> impl Fn(Table, &str) -> IndexPath {
    |table, status| {
        let order = match (table, status) {
            (Table::Record, "pending") => " order by part, id",
            (Table::Record, "unhandled") => " order by part, event",
            (_, "scheduled" | "retrying") => " order by part, due_at",
            _ => " order by id",
        };
        (String::new(), order)
    }
}

/// Walks indexes in their order and stops early, whatever is believed of how much there is: before
/// a table was analyzed for the first time, all of a status would be read and sorted.
async fn in_order(connection: &mut PgConnection, sql: String) -> Result<Vec<PgRow>, sqlx::Error> {
    let mut tx = connection.begin().await?;
    let off = ["enable_bitmapscan", "enable_seqscan", "enable_sort", "jit"];
    let off = off.map(|setting| format!("set_config('{setting}', 'off', true)"));
    let set = trusted(format!("select {}", off.join(", ")));
    sqlx::query(set).execute(&mut *tx).await?;
    let rows = sqlx::query(trusted(sql)).fetch_all(&mut *tx).await?;
    tx.rollback().await?;
    Ok(rows)
}

impl GaugeSql for Postgres {
    async fn open_counts(
        connection: &mut PgConnection,
        names: &TableNames,
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let sql = trusted(open_counts(&record, &delivery));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn capped_counts(
        connection: &mut PgConnection,
        names: &TableNames,
        cap: u32,
    ) -> Result<Vec<CappedCount>, sqlx::Error> {
        let rows = in_order(connection, capped_counts(names, '"', path(names), cap)).await?;
        rows.iter().map(capped).collect()
    }

    async fn capped_failures(
        connection: &mut PgConnection,
        names: &TableNames,
        cap: u32,
    ) -> Result<Option<CappedCount>, sqlx::Error> {
        let failed = (Table::Delivery, "failed");
        let sql = capped_count(names, '"', path(names), cap, failed);
        let rows = in_order(connection, sql).await?;
        rows.first().map(capped).transpose()
    }

    async fn events_of(
        connection: &mut PgConnection,
        names: &TableNames,
        parts: &[StatusSample],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let rows = in_order(connection, events_of(names, '"', path(names), parts)).await?;
        rows.iter().map(counted).collect()
    }

    async fn errors_of(
        connection: &mut PgConnection,
        names: &TableNames,
        extent: SampleExtent,
        limit: u32,
    ) -> Result<Vec<ErrorCount>, sqlx::Error> {
        let sql = errors_of(names, '"', path(names), extent, limit);
        let rows = in_order(connection, sql).await?;
        rows.iter().map(error_count).collect()
    }

    async fn ids(
        connection: &mut PgConnection,
        names: &TableNames,
        table: Table,
    ) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let rows = names.table(table.name(), '"');
        // Each by itself: only so it is one step to the end of the primary key everywhere.
        let sql = trusted(format!(
            "select (select min(id) from {rows}), (select max(id) from {rows})"
        ));
        let (lowest, highest): (Option<i64>, Option<i64>) =
            sqlx::query_as(sql).fetch_one(connection).await?;
        Ok(lowest.zip(highest))
    }

    async fn statuses_within(
        connection: &mut PgConnection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (rows, is_delivery) = (names.table(table.name(), '"'), table.is_delivery());
        // With a limit in each, or the planner takes it for so much that it compiles it first.
        let sql = trusted(format!(
            "select {is_delivery}, r.status, null, count(*) from unnest($1::bigint[], $2::bigint[]) as s (first, last)
cross join lateral (
    select r.id, r.status from {rows} r where r.id >= s.first order by r.id limit $3
) r where r.id <= s.last group by r.status"
        ));
        let width = ranges.iter().map(|(first, last)| last - first + 1).max();
        let (first, last): (Vec<i64>, Vec<i64>) = ranges.iter().copied().unzip();
        let rows = sqlx::query(sql)
            .bind(first)
            .bind(last)
            .bind(width.unwrap_or(0))
            .fetch_all(connection)
            .await?;
        rows.iter().map(counted).collect()
    }

    async fn instances(
        connection: &mut PgConnection,
        names: &TableNames,
    ) -> Result<Vec<Instance>, sqlx::Error> {
        let (instances, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        let sql = trusted(format!(
            "select i.id, (extract(epoch from i.started_at) * 1000000)::bigint, (extract(epoch from i.expires_at - clock_timestamp()) * 1000000)::bigint,
    (select count(*) from {lease} l where l.owner = i.id)
from {instances} i order by i.started_at, i.id"
        ));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(instance).collect()
    }

    async fn schema_version(
        connection: &mut PgConnection,
        names: &TableNames,
    ) -> Result<Option<i64>, sqlx::Error> {
        let schema = names.table("schema", '"');
        let sql = trusted(format!("select max(version) from {schema}"));
        sqlx::query_scalar(sql).fetch_one(connection).await
    }
}
