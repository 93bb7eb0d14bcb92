//! A new database for each run, so that no peer is slowed down by the dead rows of another.

use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

pub(crate) struct Database {
    server: String,
    name: String,
    pub(crate) url: String,
}

impl Database {
    pub(crate) async fn create(server: &str, peer: &str) -> Result<Self> {
        let name = format!("peer_{}", peer.replace('-', "_"));
        let mut url = url::Url::parse(server).context("--url")?;
        url.set_path(&name);
        let database = Self {
            server: server.to_owned(),
            name,
            url: url.into(),
        };
        // An interrupted run may have left the database.
        database.remove().await?;
        database
            .on_server(format!("create database {}", database.name))
            .await?;
        Ok(database)
    }

    pub(crate) async fn remove(&self) -> Result<()> {
        self.on_server(format!(
            "drop database if exists {} with (force)",
            self.name
        ))
        .await
    }

    async fn on_server(&self, sql: String) -> Result<()> {
        let mut connection = PgConnection::connect(&self.server).await?;
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await?;
        connection.close().await?;
        Ok(())
    }
}
