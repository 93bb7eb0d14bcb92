//! The driver functions in which MySQL differs from other databases.

use jiff::Timestamp;
use sqlx::{
    Connection as _, MySql, MySqlConnection, MySqlPool, mysql::MySqlArguments, query::Query,
};
use uuid::Uuid;

use super::pending::pending_records;
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    record::Partition,
    store::{
        Database, DeliverySql, Dialect, Driver, FetchSql, FetchedRecord, LeaseSql, OpenWriters,
        PendingQuery, PublishSql, Role, SchemaSql, SettleSql, Statements, TableNames,
        call::{begin, execute, read},
        migrate::apply_missing,
    },
};

impl Database for MySql {}

impl Driver for MySql {}

impl DeliverySql for MySql {}

impl SchemaSql for MySql {
    /// In MySQL, data definition ends the transaction, so the session holds the lock. The session is
    /// detached from the pool: when this future is dropped, the session and its lock end.
    async fn migrate(pool: &MySqlPool, names: &TableNames, partitions: u16) -> Result<i64> {
        let sql = Self::statements(names).map_err(sqlx::Error::from);
        let sql = sql.during(Operation::Migrate)?;
        let mut session = pool.acquire().await.during(Operation::Migrate)?.detach();
        let tables = names.to_string();
        let lock = sql.lock_migration.bind("tables", &*tables);
        let locked = read::<Self, Option<i64>>(&mut session, lock).await;
        if locked.during(Operation::Migrate)? != [Some(1)] {
            let busy = "another process has held the migration lock for 60 s";
            return Err(sqlx::Error::Protocol(busy.to_owned())).during(Operation::Migrate);
        }
        let found = apply_missing::<Self>(&mut session, &sql, names, partitions).await?;
        session.close().await.during(Operation::Migrate)?;
        Ok(found)
    }
}

impl PublishSql for MySql {
    async fn inserted_id(
        connection: &mut MySqlConnection,
        query: Query<'static, Self, MySqlArguments>,
    ) -> Result<Option<i64>, sqlx::Error> {
        let inserted = query.execute(connection).await?;
        Ok((inserted.rows_affected() > 0).then(|| inserted.last_insert_id().cast_signed()))
    }
}

impl LeaseSql for MySql {
    async fn take_partitions(
        connection: &mut MySqlConnection,
        sql: &Statements,
        owner: Uuid,
        partitions: &[Partition],
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let mut tx = begin::<Self>(connection, Self::WORDS.begin_leases).await?;
        let lock = sql.lock_free_leases.bind("partitions", partitions);
        let free: Vec<Partition> = read::<Self, _>(&mut tx, lock).await?;
        if !free.is_empty() {
            let take = sql.take_partitions.bind("owner", owner);
            let take = take.bind("micros", micros).bind("partitions", &*free);
            execute::<Self>(&mut tx, take).await?;
        }
        tx.commit().await
    }
}

impl FetchSql for MySql {
    async fn pending_records(
        connection: &mut MySqlConnection,
        sql: &Statements,
        query: PendingQuery<'_>,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        pending_records(connection, sql, query).await
    }

    async fn open_writers(
        connection: &mut MySqlConnection,
        sql: &Statements,
    ) -> Result<OpenWriters, sqlx::Error> {
        let micros: Vec<i64> = read::<Self, _>(connection, sql.database_time.call()).await?;
        let time = micros.first().copied().map(Timestamp::from_microsecond);
        let database_time = time.and_then(Result::ok).unwrap_or(Timestamp::MIN);
        Ok(OpenWriters::Unnamed { database_time })
    }
}

impl SettleSql for MySql {
    /// When MySQL flushes to the disk is a setting of the whole server. Settling does not need
    /// repeatable reads. Without them, MySQL does not lock the gaps into which publishers insert.
    async fn configure(connection: &mut MySqlConnection, role: Role) -> Result<(), sqlx::Error> {
        limit_idle_transactions(connection).await?;
        if role == Role::Writer {
            lock_only_matches(connection).await?;
        }
        Ok(())
    }
}

/// A process that is frozen in a transaction would keep its rows locked. MariaDB ends such a session
/// after 5 seconds. MySQL has no such setting and reads a comment here.
pub(super) async fn limit_idle_transactions(
    connection: &mut MySqlConnection,
) -> Result<(), sqlx::Error> {
    sqlx::query("set @outbox = 0 /*M!100300 , session idle_transaction_timeout = 5 */")
        .execute(connection)
        .await
        .map(drop)
}

/// At a higher isolation level, MySQL also keeps rows locked that it read and that did not match.
pub(super) async fn lock_only_matches(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    sqlx::query("set session transaction isolation level read committed")
        .execute(connection)
        .await
        .map(drop)
}
