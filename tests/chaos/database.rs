//! The statements of the chaos program itself, for all three databases.

use std::{str::FromStr as _, time::Duration};

use outbox::Database;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, MySql, MySqlConnection, PgConnection, Pool, Postgres,
    Row as _, Sqlite, SqliteConnection, Transaction,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::server::Kind;

type Answer<T> = Result<T, sqlx::Error>;

/// A row of the publishers' table: event, tx, key, number, handler, dedup key.
pub(crate) type SentRow = (i64, i64, String, i64, String, Option<String>);

/// One of the databases. The values are part of the statements' texts, because each database marks
/// parameters differently; all values come from this program. No statement is prepared, because
/// none runs twice.
pub(crate) trait Tested: Database {
    const KIND: Kind;
    /// The type of a column that numbers the rows.
    const NUMBERED: &'static str;
    /// A query for the other connections of the server: their ids and their client ports.
    const SESSIONS: &'static str;

    fn pool(url: &str, connections: u32) -> impl Future<Output = Answer<Pool<Self>>> + Send;
    /// Opens a connection outside of a pool.
    fn connect(url: &str) -> impl Future<Output = Answer<Self::Connection>> + Send;
    /// Begins a transaction that writes.
    fn begin(pool: &Pool<Self>) -> impl Future<Output = Answer<Transaction<'static, Self>>> + Send;
    fn execute(
        connection: &mut Self::Connection,
        sql: String,
    ) -> impl Future<Output = Answer<()>> + Send;
    fn number(
        connection: &mut Self::Connection,
        sql: String,
    ) -> impl Future<Output = Answer<i64>> + Send;
    fn sent(connection: &mut Self::Connection)
    -> impl Future<Output = Answer<Vec<SentRow>>> + Send;
    /// The rows of the handlers' table: id, event, key.
    fn effects(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Answer<Vec<(i64, i64, String)>>> + Send;
    /// The rows of [`SESSIONS`](Self::SESSIONS).
    fn sessions(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Answer<Vec<(i64, i64)>>> + Send;
    /// A statement that ends one session.
    fn terminate(session: i64) -> String;
}

macro_rules! tested {
    ($Db:ty, $Connection:ty, $Options:ty, $PoolOptions:ty, $begin:literal,
        |$options:ident| $adjusted:expr, { $($consts:tt)* }) => {
        impl Tested for $Db {
            $($consts)*

            async fn pool(url: &str, connections: u32) -> Answer<Pool<Self>> {
                let $options = <$Options>::from_str(url)?;
                <$PoolOptions>::new()
                    .max_connections(connections)
                    .acquire_timeout(Duration::from_secs(10))
                    .connect_with($adjusted)
                    .await
            }

            async fn connect(url: &str) -> Answer<$Connection> {
                let $options = <$Options>::from_str(url)?;
                let options = $adjusted;
                let connecting = options.connect();
                match tokio::time::timeout(Duration::from_secs(5), connecting).await {
                    Ok(connected) => connected,
                    Err(_) => Err(sqlx::Error::PoolTimedOut),
                }
            }

            async fn begin(pool: &Pool<Self>) -> Answer<Transaction<'static, Self>> {
                pool.begin_with($begin).await
            }

            async fn execute(connection: &mut $Connection, sql: String) -> Answer<()> {
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(|_| ())
            }

            async fn number(connection: &mut $Connection, sql: String) -> Answer<i64> {
                sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(connection).await?.try_get(0)
            }

            async fn sent(connection: &mut $Connection) -> Answer<Vec<SentRow>> {
                let sql = "select event, tx, name, number, handler, dedup from chaos_sent";
                sqlx::query_as(sql).fetch_all(connection).await
            }

            async fn effects(connection: &mut $Connection) -> Answer<Vec<(i64, i64, String)>> {
                let sql = "select id, event, name from chaos_effect";
                sqlx::query_as(sql).fetch_all(connection).await
            }

            async fn sessions(connection: &mut $Connection) -> Answer<Vec<(i64, i64)>> {
                sqlx::query_as(Self::SESSIONS).fetch_all(connection).await
            }

            fn terminate(session: i64) -> String {
                match Self::KIND {
                    Kind::Postgres => format!("select pg_terminate_backend({session})"),
                    Kind::Mysql | Kind::Sqlite => format!("kill {session}"),
                }
            }
        }
    };
}

tested!(
    Postgres,
    PgConnection,
    PgConnectOptions,
    PgPoolOptions,
    "begin",
    |options| options,
    {
        const KIND: Kind = Kind::Postgres;
        const NUMBERED: &'static str = "bigint generated always as identity primary key";
        const SESSIONS: &'static str = "select pid::bigint, client_port::bigint from pg_stat_activity \
        where client_port > 0";
    }
);

tested!(
    MySql,
    MySqlConnection,
    MySqlConnectOptions,
    MySqlPoolOptions,
    "begin",
    |options| options,
    {
        const KIND: Kind = Kind::Mysql;
        const NUMBERED: &'static str = "bigint auto_increment primary key";
        const SESSIONS: &'static str = "select cast(id as signed), \
        cast(substring_index(host, ':', -1) as signed) from information_schema.processlist \
        where host like '%:%'";
    }
);

tested!(
    Sqlite,
    SqliteConnection,
    SqliteConnectOptions,
    SqlitePoolOptions,
    "begin immediate",
    |options| options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(Duration::from_secs(5)),
    {
        const KIND: Kind = Kind::Sqlite;
        const NUMBERED: &'static str = "integer primary key autoincrement";
        const SESSIONS: &'static str = "select 0, 0 where false";
    }
);

/// Creates the tables of the chaos program and a row for each key.
pub(crate) async fn prepare<Db: Tested>(
    connection: &mut Db::Connection,
    keys: impl Iterator<Item = String>,
) -> Answer<()> {
    let numbered = Db::NUMBERED;
    for table in [
        "chaos_key (name varchar(40) primary key, number bigint not null)".to_owned(),
        "chaos_sent (event bigint primary key, tx bigint not null, name varchar(40) not null, \
            number bigint not null, handler varchar(10) not null, dedup varchar(40))"
            .to_owned(),
        format!(
            "chaos_effect (id {numbered}, event bigint not null, name varchar(40) not null, \
            number bigint not null)"
        ),
    ] {
        Db::execute(connection, format!("create table {table}")).await?;
    }
    let rows: Vec<String> = keys.map(|key| format!("('{key}', 0)")).collect();
    let sql = format!("insert into chaos_key values {}", rows.join(", "));
    Db::execute(connection, sql).await
}
