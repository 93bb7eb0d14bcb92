//! Gauges of MySQL.

use sqlx::{MySql, MySqlConnection};

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

/// The index that begins with the status, named: it is one of several that do.
fn path(names: &TableNames) -> impl Fn(Table, &str) -> IndexPath {
    |table, status| {
        let (index, order) = match (table, status) {
            (Table::Record, "scheduled") => ("record_scheduled", " order by part, due_at"),
            (Table::Record, _) => ("record_pending", " order by part, id"),
            (Table::Delivery, "retrying") => ("delivery_due", " order by part, due_at"),
            (Table::Delivery, _) => ("delivery_waiting", " order by id"),
        };
        (format!(" force index (`{}`)", names.plain(index)), order)
    }
}

impl GaugeSql for MySql {
    async fn open_counts(
        connection: &mut MySqlConnection,
        names: &TableNames,
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let sql = trusted(open_counts(&record, &delivery));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn capped_counts(
        connection: &mut MySqlConnection,
        names: &TableNames,
        cap: u32,
    ) -> Result<Vec<CappedCount>, sqlx::Error> {
        let sql = trusted(capped_counts(names, '`', path(names), cap));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(capped).collect()
    }

    async fn capped_failures(
        connection: &mut MySqlConnection,
        names: &TableNames,
        cap: u32,
    ) -> Result<Option<CappedCount>, sqlx::Error> {
        let failed = (Table::Delivery, "failed");
        let sql = trusted(capped_count(names, '`', path(names), cap, failed));
        let row = sqlx::query(sql).fetch_optional(connection).await?;
        row.as_ref().map(capped).transpose()
    }

    async fn events_of(
        connection: &mut MySqlConnection,
        names: &TableNames,
        parts: &[StatusSample],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let sql = trusted(events_of(names, '`', path(names), parts));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn errors_of(
        connection: &mut MySqlConnection,
        names: &TableNames,
        extent: SampleExtent,
        limit: u32,
    ) -> Result<Vec<ErrorCount>, sqlx::Error> {
        let sql = trusted(errors_of(names, '`', path(names), extent, limit));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(error_count).collect()
    }

    async fn ids(
        connection: &mut MySqlConnection,
        names: &TableNames,
        table: Table,
    ) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let rows = names.table(table.name(), '`');
        // Each by itself: only so it is one step to the end of the primary key everywhere.
        let sql = trusted(format!(
            "select (select min(id) from {rows}), (select max(id) from {rows})"
        ));
        let (lowest, highest): (Option<i64>, Option<i64>) =
            sqlx::query_as(sql).fetch_one(connection).await?;
        Ok(lowest.zip(highest))
    }

    async fn statuses_within(
        connection: &mut MySqlConnection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (rows, is_delivery) = (names.table(table.name(), '`'), table.is_delivery());
        let of = |(first, last): &(i64, i64)| format!("id between {first} and {last}");
        let parts: Vec<String> = ranges.iter().map(of).collect();
        let sql = trusted(format!(
            "select {is_delivery}, status, null, count(*) from {rows} force index (primary) where {}\ngroup by status",
            parts.join(" or ")
        ));
        // Another text each time: not worth to be prepared, and what comes after the end of a
        // prepared statement, which nobody answers, would wait for 40 ms.
        let rows = sqlx::raw_sql(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn instances(
        connection: &mut MySqlConnection,
        names: &TableNames,
    ) -> Result<Vec<Instance>, sqlx::Error> {
        let (instances, lease) = (names.table("instance", '`'), names.table("lease", '`'));
        let sql = trusted(format!(
            "select i.id, timestampdiff(microsecond, '1970-01-01', i.started_at), timestampdiff(microsecond, utc_timestamp(6), i.expires_at),
    (select count(*) from {lease} l where l.owner = i.id)
from {instances} i order by i.started_at, i.id"
        ));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(instance).collect()
    }

    async fn schema_version(
        connection: &mut MySqlConnection,
        names: &TableNames,
    ) -> Result<Option<i64>, sqlx::Error> {
        let schema = names.table("schema", '`');
        let sql = trusted(format!("select max(version) from {schema}"));
        sqlx::query_scalar(sql).fetch_one(connection).await
    }
}
