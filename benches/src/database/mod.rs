//! The statements that the scenarios run without the library.

mod mysql;
mod postgres;
mod sqlite;

use clap::ValueEnum;
use sqlx::Pool;

use crate::{backlog::Fill, by_hand::ByHand, floor::Floor, usage::Reading};

/// One of the databases.
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

    /// The variable in which `scripts/with-databases` gives the URL of its server. SQLite has none.
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

    /// Begins a transaction that keeps a snapshot of the database until its end.
    const BEGIN_SNAPSHOT: &str;

    /// Creates an empty schema (PostgreSQL), database (MySQL) or file (SQLite) of this name, and
    /// returns its URL. It changes nothing else on the server.
    async fn create(url: &str, name: &str) -> anyhow::Result<String>;

    /// A pool of at most `connections` connections, some of which are already open.
    fn connect(
        url: &str,
        connections: u32,
    ) -> impl Future<Output = anyhow::Result<Pool<Self>>> + Send;

    /// Runs statements, one after the other.
    fn execute(pool: &Pool<Self>, sql: &str) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Runs statements on one connection.
    fn execute_on(
        connection: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// The numbers that a query returns, one per row.
    fn numbers(
        pool: &Pool<Self>,
        sql: &str,
    ) -> impl Future<Output = anyhow::Result<Vec<i64>>> + Send;

    /// The number that a query returns.
    fn number(pool: &Pool<Self>, sql: &str) -> impl Future<Output = anyhow::Result<i64>> + Send;

    /// The text that a query returns.
    fn text(
        pool: &Pool<Self>,
        sql: &'static str,
    ) -> impl Future<Output = anyhow::Result<String>> + Send;

    /// Empties the tables, so that every run starts from the same state.
    fn empty(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Updates the statistics of the tables, and writes all changes to disk.
    fn settle_down(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// The counters of the server; `None` if it does not count.
    fn reading(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<Option<Reading>>> + Send;
}

/// Methods that differ only in the type of the pool.
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
