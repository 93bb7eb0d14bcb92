//! What MySQL does in its own way.

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
    store::{
        Database, DeliverySql, Dialect, Driver, FetchSql, FetchedRecord, LeaseSql, OpenWriters,
        PendingQuery, PublishSql, SchemaSql, SettleSql, Statements, TableNames,
        call::{begin, execute, read},
        migrate::apply_missing,
    },
};

impl Database for MySql {}

impl Driver for MySql {}

impl DeliverySql for MySql {}

impl SchemaSql for MySql {
    /// Data definition ends transactions here, so the lock is the session's; out of the pool, so that
    /// the session, and the lock with it, ends when this future is dropped.
    async fn migrate(pool: &MySqlPool, names: &TableNames) -> Result<i64> {
        let sql = Self::statements(names).map_err(sqlx::Error::from);
        let sql = sql.during(Operation::Migrate)?;
        let mut session = pool.acquire().await.during(Operation::Migrate)?.detach();
        let tables = names.to_string();
        let lock = sql.lock_migration.bind("tables", &*tables);
        let locked = read::<Self, Option<i64>>(&mut session, lock).await;
        if locked.during(Operation::Migrate)? != [Some(1)] {
            let busy = "another process has been migrating for 60 s, or is stuck";
            return Err(sqlx::Error::Protocol(busy.to_owned())).during(Operation::Migrate);
        }
        let found = apply_missing::<Self>(&mut session, &sql, names).await?;
        session.close().await.during(Operation::Migrate)?;
        Ok(found)
    }
}

impl PublishSql for MySql {
    async fn inserted_id(
        connection: &mut MySqlConnection,
        query: Query<'static, Self, MySqlArguments>,
    ) -> Result<Option<i64>, sqlx::Error> {
        let done = query.execute(connection).await?;
        Ok((done.rows_affected() > 0).then(|| done.last_insert_id().cast_signed()))
    }
}

impl LeaseSql for MySql {
    async fn take_partitions(
        connection: &mut MySqlConnection,
        sql: &Statements,
        owner: Uuid,
        partitions: &[u16],
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let mut tx = begin::<Self>(connection, Self::WORDS.begin_leases).await?;
        let lock = sql.lock_free_leases.bind("partitions", partitions);
        let free: Vec<u16> = read::<Self, _>(&mut tx, lock).await?;
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
        let micros: Vec<i64> = read::<Self, _>(connection, sql.clock.call()).await?;
        let clock = micros.first().copied().map(Timestamp::from_microsecond);
        let clock = clock.and_then(Result::ok).unwrap_or(Timestamp::MIN);
        Ok(OpenWriters::Unnamed { clock })
    }
}

impl SettleSql for MySql {
    /// How soon MySQL writes to its disk is a setting of the whole server. But settling needs no
    /// repeatable reads, and without them no gaps between rows are locked, in which others insert.
    async fn configure(connection: &mut MySqlConnection, settles: bool) -> Result<(), sqlx::Error> {
        limit_idle_transactions(connection).await?;
        if settles {
            lock_only_matches(connection).await?;
        }
        Ok(())
    }
}

/// A process that is frozen in the middle of a transaction would keep others from the rows that it
/// has locked. MariaDB ends such a session after this many seconds; MySQL itself cannot, and reads
/// a comment here.
pub(super) async fn limit_idle_transactions(
    connection: &mut MySqlConnection,
) -> Result<(), sqlx::Error> {
    sqlx::query("set @outbox = 0 /*M!100300 , session idle_transaction_timeout = 5 */")
        .execute(connection)
        .await
        .map(drop)
}

/// Otherwise every row that is looked at stays locked, also those of others.
pub(super) async fn lock_only_matches(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    sqlx::query("set session transaction isolation level read committed")
        .execute(connection)
        .await
        .map(drop)
}
