//! Signs of other processes in MySQL: polls, and the locks of sessions.

use std::{future::pending, time::Duration};

use sqlx::{Connection as _, MySql, MySqlPool, pool::PoolConnection};
use uuid::Uuid;

use super::{MySqlStatements, lease::of_instance, settle::limit_idle_transactions};
use crate::store::{Notification, PollResult, SessionKey, WatchSql, columns::read_one};

impl WatchSql for MySql {
    type WatchConnection = PoolConnection<Self>;

    const HAS_SESSION_LOCKS: bool = true;
    const HAS_NOTIFICATIONS: bool = false;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(50);

    async fn open(
        pool: &MySqlPool,
        _: &MySqlStatements,
    ) -> Result<Self::WatchConnection, sqlx::Error> {
        let mut line = pool.acquire().await?;
        // Its locks must end with it.
        line.close_on_drop();
        limit_idle_transactions(&mut line).await?;
        // Otherwise every row that is looked at stays locked, also those of others.
        sqlx::query("set session transaction isolation level read committed")
            .execute(&mut *line)
            .await?;
        Ok(line)
    }

    async fn lock_session(
        line: &mut Self::WatchConnection,
        session: SessionKey,
    ) -> Result<(), sqlx::Error> {
        let get = sqlx::query("select get_lock(?, 5)").bind(lock(session));
        get.execute(&mut **line).await.map(drop)
    }

    async fn register(
        line: &mut Self::WatchConnection,
        sql: &MySqlStatements,
        owner: Uuid,
        session: SessionKey,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(sql.register.clone())
            .bind(owner)
            .bind(lock(session))
            .bind(micros)
            .execute(&mut **line)
            .await
            .map(drop)
    }

    async fn advertise(
        line: &mut Self::WatchConnection,
        sql: &MySqlStatements,
        owner: Uuid,
        session: Option<SessionKey>,
    ) -> Result<(), sqlx::Error> {
        let advertise = sqlx::query(sql.advertise.clone());
        let advertise = advertise.bind(session.map(lock)).bind(owner);
        advertise.execute(&mut **line).await.map(drop)
    }

    async fn poll(
        line: &mut Self::WatchConnection,
        sql: &MySqlStatements,
        owner: Uuid,
        session: Option<SessionKey>,
        highest: i64,
    ) -> Result<PollResult, sqlx::Error> {
        let lock = session.map(lock);
        let row = sqlx::query(sql.poll.clone())
            .bind(highest)
            .bind(highest)
            .bind(owner)
            .bind(owner)
            .bind(&lock)
            .bind(&lock)
            .bind(owner)
            .fetch_one(&mut **line)
            .await?;
        read_one(&row)
    }

    async fn reap_lost(
        line: &mut Self::WatchConnection,
        sql: &MySqlStatements,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let mut tx = line.begin().await?;
        if of_instance(&mut tx, &sql.delete_lost_instance, instance).await? > 0 {
            of_instance(&mut tx, &sql.free_leases, instance).await?;
        }
        tx.commit().await
    }

    async fn next_notification(_: &mut Self::WatchConnection) -> Result<Notification, sqlx::Error> {
        pending().await
    }
}

/// The name of a session's lock, which is one of the whole server.
fn lock(session: SessionKey) -> String {
    format!("outbox:{:016x}", session.0)
}
