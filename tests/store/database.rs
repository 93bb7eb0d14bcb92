//! A database for one test, empty and its own.

use outbox::{Database, Outbox, Registry};
use sqlx::{AssertSqlSafe, Pool};

/// One test's database.
pub(crate) struct Fresh<Db: Database> {
    pub(crate) pool: Pool<Db>,
    pub(crate) outbox: Outbox<Db>,
}

async fn with_outbox<Db: Database>(pool: Pool<Db>) -> Fresh<Db> {
    let outbox = Outbox::builder(pool.clone())
        .registry(Registry::builder().allow_empty())
        .build()
        .await
        .expect("an outbox");
    Fresh { pool, outbox }
}

/// A name that nothing else has.
fn unique() -> String {
    format!("t{}", uuid::Uuid::now_v7().simple())
}

/// A server that is not there is a failure, never a skipped test.
fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `scripts/test`, or put `scripts/with-databases` in front of the command")
    })
}

pub(crate) mod sqlite {
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};

    /// Expressions that differ between databases.
    pub(crate) const KEY: &str = "key";
    pub(crate) const SECONDS_UNTIL_DUE: &str = "(due_at / 1000000 - unixepoch())";
    pub(crate) const SECONDS_OLD: &str = "(unixepoch() - created_at / 1000000)";

    pub(crate) async fn empty() -> SqlitePool {
        // Below `target`, which `cargo clean` empties.
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(super::unique())
            .with_extension("sqlite");
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .create_if_missing(true);
        SqlitePool::connect_with(options).await.expect("SQLite")
    }

    pub(crate) async fn fresh() -> super::Fresh<sqlx::Sqlite> {
        super::with_outbox(empty().await).await
    }
}

pub(crate) mod postgres {
    use sqlx::{PgPool, postgres::PgConnectOptions};

    pub(crate) const KEY: &str = "key";
    pub(crate) const SECONDS_UNTIL_DUE: &str =
        "extract(epoch from due_at - clock_timestamp())::bigint";
    pub(crate) const SECONDS_OLD: &str =
        "extract(epoch from clock_timestamp() - created_at)::bigint";

    pub(crate) async fn empty() -> PgPool {
        let options: PgConnectOptions = super::url("OUTBOX_TEST_POSTGRES_URL")
            .parse()
            .expect("a URL");
        let name = super::unique();
        let server = PgPool::connect_with(options.clone())
            .await
            .expect("PostgreSQL");
        let create = super::AssertSqlSafe(format!("create database {name}"));
        sqlx::query(create)
            .execute(&server)
            .await
            .expect("a database");
        server.close().await;
        PgPool::connect_with(options.database(&name))
            .await
            .expect("PostgreSQL")
    }

    pub(crate) async fn fresh() -> super::Fresh<sqlx::Postgres> {
        super::with_outbox(empty().await).await
    }
}

pub(crate) mod mysql {
    use sqlx::{MySqlPool, mysql::MySqlConnectOptions};

    pub(crate) const KEY: &str = "convert(`key` using utf8mb4)";
    pub(crate) const SECONDS_UNTIL_DUE: &str = "timestampdiff(second, utc_timestamp(6), due_at)";
    pub(crate) const SECONDS_OLD: &str = "timestampdiff(second, created_at, utc_timestamp(6))";

    pub(crate) async fn empty() -> MySqlPool {
        let options: MySqlConnectOptions =
            super::url("OUTBOX_TEST_MYSQL_URL").parse().expect("a URL");
        let name = super::unique();
        let server = MySqlPool::connect_with(options.clone())
            .await
            .expect("MySQL");
        let create = super::AssertSqlSafe(format!("create database {name}"));
        sqlx::query(create)
            .execute(&server)
            .await
            .expect("a database");
        server.close().await;
        MySqlPool::connect_with(options.database(&name))
            .await
            .expect("MySQL")
    }

    pub(crate) async fn fresh() -> super::Fresh<sqlx::MySql> {
        super::with_outbox(empty().await).await
    }
}

/// Writes each test three times, once per database. `$db` is a [`Fresh`] of its own: a pool and
/// an outbox without handlers.
macro_rules! on_each_database {
    ($(async fn $name:ident($db:ident) $body:block)*) => {
        on_each_database!(@sqlite $(async fn $name($db) $body)*);
        on_each_database!(@postgres $(async fn $name($db) $body)*);
        on_each_database!(@mysql $(async fn $name($db) $body)*);
    };
    (@$database:ident $(async fn $name:ident($db:ident) $body:block)*) => {
        mod $database {
            use super::*;
            use crate::database::$database as database;

            $(#[tokio::test]
            async fn $name() {
                let $db = database::fresh().await;
                $body
            })*
        }
    };
}
pub(crate) use on_each_database;
