//! An empty database for each test.

#![expect(
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "every function here is part of a test"
)]

use outbox::{Database, Outbox, Registry};
use sqlx::{AssertSqlSafe, Pool};

/// The database of one test.
#[derive(Debug)]
pub struct Fresh<Db: Database> {
    pub pool: Pool<Db>,
    pub outbox: Outbox<Db>,
}

impl<Db: Database> Fresh<Db> {
    /// The URL by which another process connects to this database.
    #[must_use]
    pub fn url(&self) -> String {
        use sqlx::ConnectOptions as _;
        self.pool.connect_options().to_url_lossy().to_string()
    }
}

/// An SQL expression: the present time of the database plus `seconds`.
#[must_use]
pub fn in_seconds<Db: Database>(_: &Fresh<Db>, seconds: i64) -> String {
    match Db::NAME {
        "SQLite" => format!("({} + {})", sqlite::NOW, seconds * 1_000_000),
        "PostgreSQL" => format!("(clock_timestamp() + {seconds} * interval '1 second')"),
        _ => format!("(utc_timestamp(6) + interval {seconds} second)"),
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

/// A name that no other database has.
fn unique() -> String {
    format!("t{}", uuid::Uuid::now_v7().simple())
}

/// The URL of a server. A missing server fails the test; it never skips it.
fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `scripts/test`, or put `scripts/with-databases` in front of the command")
    })
}

/// Statements by which tests read and change the tables without the outbox.
macro_rules! queries {
    ($pool:ty) => {
        /// One number.
        pub async fn number(pool: &$pool, sql: &str) -> i64 {
            let sql = sqlx::AssertSqlSafe(sql.to_owned());
            let found = sqlx::query_scalar(sql).fetch_one(pool).await;
            found.expect("a number")
        }

        /// One column of text.
        pub async fn texts(pool: &$pool, sql: &str) -> Vec<String> {
            let sql = sqlx::AssertSqlSafe(sql.to_owned());
            let found = sqlx::query_scalar(sql).fetch_all(pool).await;
            found.expect("texts")
        }

        pub async fn execute(pool: &$pool, sql: &str) {
            let sql = sqlx::AssertSqlSafe(sql.to_owned());
            sqlx::query(sql).execute(pool).await.expect("a statement");
        }

        /// Makes every failed delivery due now, as an operator's replay does.
        pub async fn replay(pool: &$pool) {
            let sql = format!(
                "update outbox_delivery set status = 'retrying', due_at = {NOW}, attempt = attempt + 1, \
                failure_count = 0, first_failed_at = null where status = 'failed'"
            );
            execute(pool, &sql).await;
        }

        pub async fn pause(pool: &$pool, handler: &str) {
            let sql = format!("insert into outbox_pause (handler, paused_at) values ('{handler}', {NOW})");
            execute(pool, &sql).await;
        }

        pub async fn resume(pool: &$pool, handler: &str) {
            execute(pool, &format!("delete from outbox_pause where handler = '{handler}'")).await;
        }
    };
}

pub mod sqlite {
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};

    /// Expressions that differ between databases.
    pub const KEY: &str = "key";
    pub const SECONDS_UNTIL_DUE: &str = "(due_at / 1000000 - unixepoch())";
    pub const SECONDS_OLD: &str = "(unixepoch() - created_at / 1000000)";

    /// The present time of the database.
    pub const NOW: &str = "cast(unixepoch('subsec') * 1000000 as integer)";
    /// A random id.
    pub const ID: &str = "randomblob(16)";
    /// A query for the present time of the database plus `seconds`, as text.
    #[must_use]
    pub fn text_in(seconds: i32) -> String {
        format!("select strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '{seconds} seconds')")
    }
    /// Whether the database allows only one writer at a time.
    pub const ONE_WRITER: bool = true;

    queries!(SqlitePool);

    pub async fn empty() -> SqlitePool {
        // The folder is below `target`, so `cargo clean` removes it.
        let program = std::env::current_exe().expect("a path");
        let folder = program.parent().expect("a folder").join("databases");
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(super::unique()).with_extension("sqlite");
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            // SQLite does not grant its locks in order: on a busy machine a writer may wait for seconds.
            .busy_timeout(std::time::Duration::from_secs(30))
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

    pub const NOW: &str = "clock_timestamp()";
    pub const ID: &str = "gen_random_uuid()";
    #[must_use]
    pub fn text_in(seconds: i32) -> String {
        format!(
            "select to_char(clock_timestamp() at time zone 'utc' + interval '{seconds} seconds', \
            'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
        )
    }
    pub const ONE_WRITER: bool = false;

    queries!(PgPool);

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

    pub const NOW: &str = "utc_timestamp(6)";
    pub const ID: &str = "unhex(replace(uuid(), '-', ''))";
    #[must_use]
    pub fn text_in(seconds: i32) -> String {
        format!(
            "select date_format(utc_timestamp(6) + interval {seconds} second, '%Y-%m-%dT%H:%i:%s.%fZ')"
        )
    }
    pub const ONE_WRITER: bool = false;

    queries!(MySqlPool);

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
