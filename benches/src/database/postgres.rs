//! PostgreSQL.

use std::time::Duration;

use anyhow::Context as _;
use sqlx::{
    Connection as _, Executor as _, PgConnection, PgPool, Postgres, postgres::PgPoolOptions,
};

use super::{Bench, Kind, plain_statements};
use crate::usage::Reading;

impl Bench for Postgres {
    const KIND: Kind = Kind::Postgres;
    const VERSION: &str = "select 'PostgreSQL ' || current_setting('server_version')";
    const BEGIN_SNAPSHOT: &str = "begin isolation level repeatable read";

    async fn create(url: &str, name: &str) -> anyhow::Result<String> {
        let mut connection = PgConnection::connect(url).await.context("PostgreSQL")?;
        let sql = format!("drop schema if exists {name} cascade; create schema {name}");
        let sql = sqlx::AssertSqlSafe(sql);
        connection.execute(sqlx::raw_sql(sql)).await?;
        connection.close().await?;
        let mark = if url.contains('?') { '&' } else { '?' };
        Ok(format!("{url}{mark}options=-csearch_path%3D{name}"))
    }

    async fn connect(url: &str, connections: u32) -> anyhow::Result<PgPool> {
        let options = PgPoolOptions::new()
            .max_connections(connections)
            .min_connections(connections.min(4));
        Ok(options.connect(url).await?)
    }

    plain_statements!();

    async fn empty(pool: &PgPool) -> anyhow::Result<()> {
        let sql = "truncate outbox_record, outbox_delivery, outbox_failure restart identity";
        Self::execute(pool, sql).await
    }

    async fn settle_down(pool: &PgPool) -> anyhow::Result<()> {
        Self::execute(pool, "analyze outbox_record").await?;
        // The server itself would do this within a minute.
        Self::execute(pool, "vacuum analyze outbox_delivery").await?;
        Self::execute(pool, "checkpoint").await
    }

    async fn reading(pool: &PgPool) -> anyhow::Result<Option<Reading>> {
        // The server publishes the commits of a session shortly after the session has ended.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let log = "select (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let commits = "select xact_commit from pg_stat_database where datname = current_database()";
        Ok(Some(Reading {
            log_bytes: Self::number(pool, log).await?,
            commits: Self::number(pool, commits).await?,
        }))
    }
}
