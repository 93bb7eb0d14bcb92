//! Signs of other processes in PostgreSQL: notifications, and the locks of sessions.

use std::time::Duration;

use sqlx::{PgConnection, PgPool, Postgres, postgres::PgListener};
use uuid::Uuid;

use super::PostgresStatements;
use crate::store::{Notification, PollResult, SessionKey, WatchSql, columns::read_one};

/// The message that partitions changed hands. Any other message is a list of partitions: `3,17`.
const LEASES: &str = "leases";

impl WatchSql for Postgres {
    type WatchConnection = PgListener;

    const HAS_SESSION_LOCKS: bool = true;
    const HAS_NOTIFICATIONS: bool = true;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(100);

    async fn open(pool: &PgPool, sql: &PostgresStatements) -> Result<PgListener, sqlx::Error> {
        let mut line = PgListener::connect_with(pool).await?;
        line.eager_reconnect(false);
        line.listen(sql.channel.as_str()).await?;
        Ok(line)
    }

    async fn lock_session(line: &mut PgListener, session: SessionKey) -> Result<(), sqlx::Error> {
        let lock = sqlx::query("select pg_advisory_lock($1)").bind(session.0);
        lock.execute(line).await.map(drop)
    }

    async fn unlock_session(line: &mut PgListener) -> Result<(), sqlx::Error> {
        // The connection goes back to the pool.
        let unlock = sqlx::query("select pg_advisory_unlock_all()");
        unlock.execute(line).await.map(drop)
    }

    async fn register(
        line: &mut PgListener,
        sql: &PostgresStatements,
        owner: Uuid,
        session: SessionKey,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(sql.register.clone())
            .bind(owner)
            .bind(session.0)
            .bind(micros)
            .execute(line)
            .await
            .map(drop)
    }

    async fn advertise(
        line: &mut PgListener,
        sql: &PostgresStatements,
        owner: Uuid,
        session: Option<SessionKey>,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(sql.advertise.clone())
            .bind(owner)
            .bind(session.map(|key| key.0))
            .execute(line)
            .await
            .map(drop)
    }

    async fn poll(
        line: &mut PgListener,
        sql: &PostgresStatements,
        owner: Uuid,
        session: Option<SessionKey>,
        highest: i64,
    ) -> Result<PollResult, sqlx::Error> {
        let row = sqlx::query(sql.poll.clone())
            .bind(highest)
            .bind(sql.record_table.as_str())
            .bind(owner)
            .bind(session.map(|key| key.0))
            .fetch_one(line)
            .await?;
        read_one(&row)
    }

    async fn reap_lost(
        line: &mut PgListener,
        sql: &PostgresStatements,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let reap = sqlx::query(sql.reap_lost.clone()).bind(instance);
        reap.execute(line).await.map(drop)
    }

    async fn set_listening(
        line: &mut PgListener,
        sql: &PostgresStatements,
        owner: Uuid,
        listening: bool,
    ) -> Result<(), sqlx::Error> {
        let set = sqlx::query(sql.set_listening.clone());
        let set = set.bind(owner).bind(listening);
        set.execute(line).await.map(drop)
    }

    async fn next_notification(line: &mut PgListener) -> Result<Notification, sqlx::Error> {
        Ok(match line.try_recv().await? {
            Some(told) => understood(told.payload()),
            None => Notification::ConnectionLost,
        })
    }

    async fn notify_peers(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
    ) -> Result<(), sqlx::Error> {
        let notify = sqlx::query(sql.notify_peers.clone());
        let notify = notify.bind(sql.channel.as_str()).bind(LEASES);
        notify.execute(connection).await.map(drop)
    }
}

/// Anybody may send anything on a channel: what is no list of partitions only wakes.
fn understood(payload: &str) -> Notification {
    if payload == LEASES {
        return Notification::OwnershipChanged;
    }
    let parts = payload.split(',').map_while(|part| part.parse().ok());
    Notification::Published(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_told_is_understood_somehow() {
        assert_eq!(understood("leases"), Notification::OwnershipChanged);
        assert_eq!(understood("3,17"), Notification::Published(vec![3, 17]));
        assert_eq!(understood("63"), Notification::Published(vec![63]));
        assert_eq!(understood(""), Notification::Published(vec![]));
        assert_eq!(understood("1,x,2"), Notification::Published(vec![1]));
    }
}
