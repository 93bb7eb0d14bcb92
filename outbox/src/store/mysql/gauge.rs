//! Gauges of MySQL.

use sqlx::{MySql, MySqlConnection};

use crate::{
    operations::Instance,
    store::{
        Counted, GaugeSql, Names,
        gauge::{finished_within, instance, open_counts},
        report::counted,
        trusted,
    },
};

impl GaugeSql for MySql {
    async fn open_counts(
        connection: &mut MySqlConnection,
        names: &Names,
    ) -> Result<Vec<Counted>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let sql = trusted(open_counts(&record, &delivery));
        let rows = sqlx::query(sql).fetch_all(connection).await?;
        rows.iter().map(counted).collect()
    }

    async fn ids(
        connection: &mut MySqlConnection,
        names: &Names,
    ) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let record = names.table("record", '`');
        // Each by itself: only so it is one step to the end of the primary key everywhere.
        let sql = trusted(format!(
            "select (select min(id) from {record}), (select max(id) from {record})"
        ));
        let (lowest, highest): (Option<i64>, Option<i64>) =
            sqlx::query_as(sql).fetch_one(connection).await?;
        Ok(lowest.zip(highest))
    }

    async fn finished_within(
        connection: &mut MySqlConnection,
        names: &Names,
        ranges: &[(i64, i64)],
    ) -> Result<Vec<Counted>, sqlx::Error> {
        let sql = trusted(finished_within(&names.table("record", '`'), ranges));
        // Another text each time: not worth a place among the prepared ones.
        let rows = sqlx::query(sql)
            .persistent(false)
            .fetch_all(connection)
            .await?;
        rows.iter().map(counted).collect()
    }

    async fn instances(
        connection: &mut MySqlConnection,
        names: &Names,
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
        names: &Names,
    ) -> Result<Option<i64>, sqlx::Error> {
        let schema = names.table("schema", '`');
        let sql = trusted(format!("select max(version) from {schema}"));
        sqlx::query_scalar(sql).fetch_one(connection).await
    }
}
