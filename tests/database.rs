//! A database for one test, empty and its own.

#![expect(
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "every function here is part of a test"
)]

use outbox::{Database, Outbox, Registry};
use sqlx::{AssertSqlSafe, Pool};

/// One test's database.
#[derive(Debug)]
pub struct Fresh<Db: Database> {
    pub pool: Pool<Db>,
    pub outbox: Outbox<Db>,
}

impl<Db: Database> Fresh<Db> {
    /// For another process.
    pub fn url(&self) -> String {
        use sqlx::ConnectOptions as _;
        self.pool.connect_options().to_url_lossy().to_string()
    }
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

pub mod sqlite {
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};

    /// Expressions that differ between databases.
    pub const KEY: &str = "key";
    pub const SECONDS_UNTIL_DUE: &str = "(due_at / 1000000 - unixepoch())";
    pub const SECONDS_OLD: &str = "(unixepoch() - created_at / 1000000)";

    pub async fn empty() -> SqlitePool {
        // Below `target`, which `cargo clean` empties.
        let program = std::env::current_exe().expect("a path");
        let folder = program.parent().expect("a folder").join("databases");
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(super::unique()).with_extension("sqlite");
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .create_if_missing(true);
        SqlitePool::connect_with(options).await.expect("SQLite")
    }

    pub async fn fresh() -> super::Fresh<sqlx::Sqlite> {
        super::with_outbox(empty().await).await
    }
}

pub mod postgres {
    use sqlx::{PgPool, postgres::PgConnectOptions};

    pub const KEY: &str = "key";
    pub const SECONDS_UNTIL_DUE: &str = "extract(epoch from due_at - clock_timestamp())::bigint";
    pub const SECONDS_OLD: &str = "extract(epoch from clock_timestamp() - created_at)::bigint";

    pub async fn empty() -> PgPool {
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

    pub async fn fresh() -> super::Fresh<sqlx::Postgres> {
        super::with_outbox(empty().await).await
    }
}

pub mod mysql {
    use sqlx::{MySqlPool, mysql::MySqlConnectOptions};

    pub const KEY: &str = "convert(`key` using utf8mb4)";
    pub const SECONDS_UNTIL_DUE: &str = "timestampdiff(second, utc_timestamp(6), due_at)";
    pub const SECONDS_OLD: &str = "timestampdiff(second, created_at, utc_timestamp(6))";

    pub async fn empty() -> MySqlPool {
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

    pub async fn fresh() -> super::Fresh<sqlx::MySql> {
        super::with_outbox(empty().await).await
    }
}
