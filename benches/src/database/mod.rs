//! What the scenarios need of a database besides the library.

mod mysql;
mod postgres;
mod sqlite;

use clap::ValueEnum;
use sqlx::Pool;

use crate::{backlog::Fill, by_hand::ByHand, floor::Floor, usage::Reading};

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Postgres,
    Mysql,
    Sqlite,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Postgres, Self::Mysql, Self::Sqlite];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Sqlite => "sqlite",
        }
    }

    /// Where `scripts/with-databases` says which server it started. SQLite has none.
    pub(crate) fn variable(self) -> Option<&'static str> {
        match self {
            Self::Postgres => Some("OUTBOX_TEST_POSTGRES_URL"),
            Self::Mysql => Some("OUTBOX_TEST_MYSQL_URL"),
            Self::Sqlite => None,
        }
    }
}

/// A database that can be measured.
pub(crate) trait Bench: outbox::Database + Fill + Floor + ByHand {
    const KIND: Kind;

    /// A query for the version of the server or of the library.
    const VERSION: &str;

    /// Begins a transaction that sees the database as it is now for as long as it lasts.
    const BEGIN_SNAPSHOT: &str;

    /// An empty schema (PostgreSQL), database (MySQL) or file (SQLite) of this name, and how to
    /// reach it. Nothing else on the server is touched.
    async fn create(url: &str, name: &str) -> anyhow::Result<String>;

    /// So many connections at most, some of them made already.
    fn connect(
        url: &str,
        connections: u32,
    ) -> impl Future<Output = anyhow::Result<Pool<Self>>> + Send;

    /// Runs statements, one after the other.
    fn execute(pool: &Pool<Self>, sql: &str) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// The same on one connection.
    fn execute_on(
        connection: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// The numbers that a query gives, one in each row.
    fn numbers(
        pool: &Pool<Self>,
        sql: &str,
    ) -> impl Future<Output = anyhow::Result<Vec<i64>>> + Send;

    /// The one number that a query gives.
    fn number(pool: &Pool<Self>, sql: &str) -> impl Future<Output = anyhow::Result<i64>> + Send;

    /// The one text that a query gives.
    fn text(
        pool: &Pool<Self>,
        sql: &'static str,
    ) -> impl Future<Output = anyhow::Result<String>> + Send;

    /// What makes the next run start like every other: empty tables, nothing to clean up.
    fn empty(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Statistics of what is there, and everything written to disk.
    fn settle_down(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// What the server has written and committed so far, where it counts that.
    fn reading(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<Option<Reading>>> + Send;
}

/// What is the same in all three but for the type of the pool.
macro_rules! plain_statements {
    () => {
        async fn execute(pool: &sqlx::Pool<Self>, sql: &str) -> anyhow::Result<()> {
            let sql = sqlx::AssertSqlSafe(sql.to_owned());
            sqlx::raw_sql(sql).execute(pool).await?;
            Ok(())
        }

        async fn execute_on(connection: &mut Self::Connection, sql: &str) -> anyhow::Result<()> {
            let sql = sqlx::AssertSqlSafe(sql.to_owned());
            sqlx::raw_sql(sql).execute(connection).await?;
            Ok(())
        }

        async fn numbers(pool: &sqlx::Pool<Self>, sql: &str) -> anyhow::Result<Vec<i64>> {
            let sql = sqlx::AssertSqlSafe(sql.to_owned());
            Ok(sqlx::query_scalar(sql).fetch_all(pool).await?)
        }

        async fn number(pool: &sqlx::Pool<Self>, sql: &str) -> anyhow::Result<i64> {
            let sql = sqlx::AssertSqlSafe(sql.to_owned());
            Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
        }

        async fn text(pool: &sqlx::Pool<Self>, sql: &'static str) -> anyhow::Result<String> {
            Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
        }
    };
}
pub(crate) use plain_statements;
