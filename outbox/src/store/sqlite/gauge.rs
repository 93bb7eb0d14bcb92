//! Gauges of SQLite.

use sqlx::{Sqlite, SqliteConnection};

use super::NOW;
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
            (Table::Delivery, "waiting") => " order by part, handler, id",
            _ => " order by id",
        };
        (String::new(), order)
    }
}

impl GaugeSql for Sqlite {
    async fn open_counts(
        connection: &mut SqliteConnection,
        names: &TableNames,
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let sql = trusted(open_counts(&record, &delivery));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn capped_counts(
        connection: &mut SqliteConnection,
        names: &TableNames,
        cap: u32,
    ) -> Result<Vec<CappedCount>, sqlx::Error> {
        let sql = trusted(capped_counts(names, '"', path(names), cap));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(capped).collect()
    }

    async fn capped_failures(
        connection: &mut SqliteConnection,
        names: &TableNames,
        cap: u32,
    ) -> Result<Option<CappedCount>, sqlx::Error> {
        let failed = (Table::Delivery, "failed");
        let sql = trusted(capped_count(names, '"', path(names), cap, failed));
        let row = sqlx::query(sql).fetch_optional(connection).await?;
        row.as_ref().map(capped).transpose()
    }

    async fn events_of(
        connection: &mut SqliteConnection,
        names: &TableNames,
        parts: &[StatusSample],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let sql = trusted(events_of(names, '"', path(names), parts));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn errors_of(
        connection: &mut SqliteConnection,
        names: &TableNames,
        extent: SampleExtent,
        limit: u32,
    ) -> Result<Vec<ErrorCount>, sqlx::Error> {
        let sql = trusted(errors_of(names, '"', path(names), extent, limit));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(error_count).collect()
    }

    async fn ids(
        connection: &mut SqliteConnection,
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
        connection: &mut SqliteConnection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (rows, is_delivery) = (names.table(table.name(), '"'), table.is_delivery());
        let of = |(first, last): &(i64, i64)| {
            format!("select status from {rows} where id between {first} and {last}")
        };
        let parts: Vec<String> = ranges.iter().map(of).collect();
        let sql = trusted(format!(
            "select {is_delivery}, s.status, null, count(*) from (\n{}\n) s group by s.status",
            parts.join("\nunion all ")
        ));
        // Another text each time: not worth a place among the prepared ones.
        let rows = sqlx::query(sql)
            .persistent(false)
            .fetch_all(connection)
            .await?;
        rows.iter().map(counted).collect()
    }

    async fn instances(
        connection: &mut SqliteConnection,
        names: &TableNames,
    ) -> Result<Vec<Instance>, sqlx::Error> {
        let (instances, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        let sql = trusted(format!(
            "select i.id, i.started_at, i.expires_at - {NOW},
    (select count(*) from {lease} l where l.owner = i.id)
from {instances} i order by i.started_at, i.id"
        ));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(instance).collect()
    }

    async fn schema_version(
        connection: &mut SqliteConnection,
        names: &TableNames,
    ) -> Result<Option<i64>, sqlx::Error> {
        let schema = names.table("schema", '"');
        let sql = trusted(format!("select max(version) from {schema}"));
        sqlx::query_scalar(sql).fetch_one(connection).await
    }
}
