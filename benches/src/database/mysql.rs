//! MySQL and MariaDB.

use anyhow::Context as _;
use sqlx::{
    Connection as _, Executor as _, MySql, MySqlConnection, MySqlPool, mysql::MySqlPoolOptions,
};

use super::{Bench, Kind, plain_statements};
use crate::usage::Reading;

impl Bench for MySql {
    const KIND: Kind = Kind::Mysql;
    const VERSION: &str = "select case when version() like '%MariaDB%' then version() else concat('MySQL ', version()) end";
    const BEGIN_SNAPSHOT: &str = "start transaction with consistent snapshot";

    async fn create(url: &str, name: &str) -> anyhow::Result<String> {
        let mut connection = MySqlConnection::connect(url).await.context("MySQL")?;
        let sql = format!("drop database if exists {name}; create database {name}");
        let sql = sqlx::AssertSqlSafe(sql);
        connection.execute(sqlx::raw_sql(sql)).await?;
        connection.close().await?;
        let (url, query) = url.split_once('?').unwrap_or((url, ""));
        let (server, _) = url.rsplit_once('/').context("no database in the URL")?;
        Ok(format!("{server}/{name}?{query}"))
    }

    async fn connect(url: &str, connections: u32) -> anyhow::Result<MySqlPool> {
        let options = MySqlPoolOptions::new()
            .max_connections(connections)
            .min_connections(connections.min(4));
        Ok(options.connect(url).await?)
    }

    plain_statements!();

    async fn empty(pool: &MySqlPool) -> anyhow::Result<()> {
        for table in ["outbox_record", "outbox_delivery", "outbox_failure"] {
            Self::execute(pool, &format!("truncate table {table}")).await?;
        }
        Ok(())
    }

    async fn settle_down(pool: &MySqlPool) -> anyhow::Result<()> {
        Self::execute(pool, "analyze table outbox_record, outbox_delivery").await
    }

    async fn reading(pool: &MySqlPool) -> anyhow::Result<Option<Reading>> {
        let sum = |names: &str| {
            format!(
                "select cast(sum(variable_value) as signed) from information_schema.global_status
where variable_name in ({names})"
            )
        };
        let log = Self::number(pool, &sum("'innodb_os_log_written'")).await;
        // MySQL itself does not have this table.
        let Ok(log_bytes) = log else { return Ok(None) };
        Ok(Some(Reading {
            log_bytes,
            commits: Self::number(pool, &sum("'com_commit', 'handler_commit'")).await?,
        }))
    }
}
