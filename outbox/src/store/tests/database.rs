//! An empty database for one test.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Pool};
use uuid::Uuid;

use super::{every_partition, p};
use crate::{
    record::Record,
    store::{
        Batch, ClusterView, Driver, Due, Fence, FetchedDelivery, FetchedRecord, LaneName, Lease,
        NewRecord, Statements, TableNames,
    },
};

/// The database of one test.
pub(super) struct Store<Db: Driver> {
    pub(super) pool: Pool<Db>,
    pub(super) names: TableNames,
    pub(super) sql: Statements,
}

/// Statements that only tests run. The same text must be valid on every database.
pub(super) trait TestSql: Driver {
    /// The first column of each row.
    async fn texts(pool: &Pool<Self>, sql: &str) -> Vec<String>;
    async fn numbers(pool: &Pool<Self>, sql: &str) -> Vec<i64>;
    async fn run(pool: &Pool<Self>, sql: &str);
}

macro_rules! test_sql {
    ($($feature:literal $database:ty,)*) => {$(
        #[cfg(feature = $feature)]
        impl TestSql for $database {
            async fn texts(pool: &Pool<Self>, sql: &str) -> Vec<String> {
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(pool).await.unwrap()
            }

            async fn numbers(pool: &Pool<Self>, sql: &str) -> Vec<i64> {
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(pool).await.unwrap()
            }

            async fn run(pool: &Pool<Self>, sql: &str) {
                sqlx::query(AssertSqlSafe(sql)).execute(pool).await.unwrap();
            }
        }
    )*};
}
test_sql! {
    "sqlite" sqlx::Sqlite,
    "postgres" sqlx::Postgres,
    "mysql" sqlx::MySql,
}

/// A record to publish.
pub(super) fn record(key: &str, number: u16) -> NewRecord {
    NewRecord {
        record: Record {
            version: 3,
            payload: "{\"name\":\"Zoë \\\"Z\\\" 🦀\"}".to_owned(),
            headers: BTreeMap::from([("trace".to_owned(), "ä".to_owned())]),
            max_retries: Some(7),
            ..Record::for_tests(0, key, "order.created")
        },
        partition: p(number),
        due: Due::Now,
        dedup_key: None,
    }
}

pub(super) fn lane(number: u16, key: &str, handler: &str) -> LaneName {
    LaneName {
        partition: p(number),
        key: key.to_owned(),
        handler: handler.to_owned(),
    }
}

/// The ids of the records, in the order of `fetched`.
pub(super) fn ids(fetched: &[FetchedRecord]) -> Vec<i64> {
    fetched.iter().map(|fetched| fetched.record.id).collect()
}

/// The record and handler of each delivery, in the order of `fetched`.
pub(super) fn names(fetched: &[FetchedDelivery]) -> Vec<(i64, &str)> {
    fetched
        .iter()
        .map(|delivery| (delivery.record.record.id, &*delivery.handler))
        .collect()
}

impl<Db: TestSql> Store<Db> {
    async fn new(pool: Pool<Db>) -> Self {
        let names = TableNames::new(None, "outbox_".to_owned()).unwrap();
        Db::migrate(&pool, &names, 64).await.unwrap();
        let sql = Db::statements(&names).unwrap();
        Self { pool, names, sql }
    }

    /// Publishes records with these keys and partitions. Returns their ids.
    pub(super) async fn publish(&self, records: &[(&str, u16)]) -> Vec<i64> {
        let new: Vec<NewRecord> = records
            .iter()
            .map(|(key, number)| record(key, *number))
            .collect();
        let mut connection = self.pool.acquire().await.unwrap();
        Db::insert_all(&mut connection, &self.sql, &new)
            .await
            .unwrap();
        drop(connection);
        let mut ids = self
            .numbers("select id from outbox_record order by id")
            .await;
        ids.split_off(ids.len() - records.len())
    }

    /// Publishes one record that is due `seconds` seconds from now.
    pub(super) async fn publish_in(&self, seconds: u64, number: u16) -> i64 {
        let mut new = record("later", number);
        new.due = Due::In(std::time::Duration::from_secs(seconds));
        let mut connection = self.pool.acquire().await.unwrap();
        let id = Db::insert(&mut connection, &self.sql, &new).await;
        id.unwrap().unwrap()
    }

    /// Takes all partitions that are free, for a new owner and 60 seconds.
    pub(super) async fn own(&self) -> Fence {
        self.own_as(Uuid::now_v7(), 60).await
    }

    /// Takes all partitions that are free, for `seconds` seconds. Returns the leases of the owner, in
    /// order.
    pub(super) async fn own_as(&self, owner: Uuid, seconds: i64) -> Fence {
        let mut connection = self.pool.acquire().await.unwrap();
        let (sql, micros) = (&self.sql, seconds * 1_000_000);
        let all = every_partition();
        Db::seed_partitions(&mut connection, sql, 64).await.unwrap();
        Db::heartbeat(&mut connection, sql, owner, micros)
            .await
            .unwrap();
        Db::take_partitions(&mut connection, sql, owner, &all, micros)
            .await
            .unwrap();
        drop(connection);
        let mut leases = self.leases_of(owner).await;
        leases.sort_by_key(|lease| lease.partition);
        Fence { owner, leases }
    }

    pub(super) async fn cluster_view(&self) -> ClusterView {
        let mut connection = self.pool.acquire().await.unwrap();
        Db::cluster_view(&mut connection, &self.sql).await.unwrap()
    }

    pub(super) async fn leases_of(&self, owner: Uuid) -> Vec<Lease> {
        let leases = self.cluster_view().await.leases.into_iter();
        leases
            .filter(|row| row.owner == Some(owner))
            .map(|row| Lease {
                partition: row.partition,
                epoch: row.epoch,
            })
            .collect()
    }

    /// Returns the leases that were refused.
    pub(super) async fn settle(&self, fence: &Fence, batch: &Batch, keep: bool) -> Vec<Lease> {
        let mut connection = self.pool.acquire().await.unwrap();
        let settled = Db::settle(&mut connection, &self.sql, fence, batch, keep).await;
        settled.unwrap().refused
    }

    pub(super) async fn texts(&self, sql: &str) -> Vec<String> {
        Db::texts(&self.pool, sql).await
    }

    pub(super) async fn numbers(&self, sql: &str) -> Vec<i64> {
        Db::numbers(&self.pool, sql).await
    }

    pub(super) async fn run(&self, sql: &str) {
        Db::run(&self.pool, sql).await;
    }

    /// The statuses of the records, in their order.
    pub(super) async fn statuses(&self) -> Vec<String> {
        self.texts("select status from outbox_record order by id")
            .await
    }

    /// The deliveries as text, in the order of their lanes.
    pub(super) async fn deliveries(&self) -> Vec<String> {
        self.texts(
            "select concat(record_id, ' ', handler, ' ', status, ' ', attempt, '/', failure_count, ' ',
    case when blocking then 'blocking' else 'free' end, ' ', coalesce(error, '-'))
from outbox_delivery order by id",
        )
        .await
    }
}

#[cfg(feature = "sqlite")]
pub(super) async fn sqlite() -> Store<sqlx::Sqlite> {
    // One connection that stays open: the database ends with it.
    let pool = sqlx::sqlite::SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect("sqlite::memory:")
        .await
        .unwrap();
    Store::new(pool).await
}

#[cfg(feature = "postgres")]
pub(super) async fn postgres() -> Store<sqlx::Postgres> {
    let options: sqlx::postgres::PgConnectOptions =
        url("OUTBOX_TEST_POSTGRES_URL").parse().unwrap();
    let (name, create) = unique();
    let server = sqlx::PgPool::connect_with(options.clone()).await.unwrap();
    sqlx::query(create).execute(&server).await.unwrap();
    server.close().await;
    let pool = sqlx::PgPool::connect_with(options.database(&name));
    Store::new(pool.await.unwrap()).await
}

#[cfg(feature = "mysql")]
pub(super) async fn mysql() -> Store<sqlx::MySql> {
    let options: sqlx::mysql::MySqlConnectOptions = url("OUTBOX_TEST_MYSQL_URL").parse().unwrap();
    let (name, create) = unique();
    let server = sqlx::MySqlPool::connect_with(options.clone())
        .await
        .unwrap();
    sqlx::query(create).execute(&server).await.unwrap();
    server.close().await;
    let pool = sqlx::MySqlPool::connect_with(options.database(&name));
    Store::new(pool.await.unwrap()).await
}

/// A unique name, and the statement that creates a database with it.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn unique() -> (String, AssertSqlSafe<String>) {
    let name = format!("t{}", Uuid::now_v7().simple());
    let create = AssertSqlSafe(format!("create database {name}"));
    (name, create)
}

/// A missing server is a failure, never a skipped test.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `scripts/test`, or put `scripts/with-databases` in front of the command")
    })
}
