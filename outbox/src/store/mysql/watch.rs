//! How the watcher notices other processes in MySQL: polls and session locks.

use std::time::Duration;

use sqlx::{MySql, MySqlConnection, MySqlPool, pool::PoolConnection};

use super::driver::{limit_idle_transactions, lock_only_matches};
use crate::store::{SessionKey, Statements, WatchSql};

impl WatchSql for MySql {
    type WatchConnection = PoolConnection<Self>;

    const HAS_SESSION_LOCKS: bool = true;
    const HAS_NOTIFICATIONS: bool = false;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(50);

    async fn open(pool: &MySqlPool, _: &Statements) -> Result<Self::WatchConnection, sqlx::Error> {
        let mut watch = pool.acquire().await?;
        // The session lock must end with the connection.
        watch.close_on_drop();
        limit_idle_transactions(&mut watch).await?;
        lock_only_matches(&mut watch).await?;
        Ok(watch)
    }

    async fn connection(
        watch: &mut Self::WatchConnection,
    ) -> Result<&mut MySqlConnection, sqlx::Error> {
        Ok(watch)
    }
}

/// The name of a session lock. Lock names are shared by the whole server.
pub(super) fn lock_name(session: SessionKey) -> String {
    format!("outbox:{:016x}", session.0)
}
