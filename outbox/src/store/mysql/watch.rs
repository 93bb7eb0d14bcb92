//! Signs of other processes in MySQL: polls, and the locks of sessions.

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
        let mut line = pool.acquire().await?;
        // Its locks must end with it.
        line.close_on_drop();
        limit_idle_transactions(&mut line).await?;
        lock_only_matches(&mut line).await?;
        Ok(line)
    }

    async fn connection(
        line: &mut Self::WatchConnection,
    ) -> Result<&mut MySqlConnection, sqlx::Error> {
        Ok(line)
    }
}

/// The name of a session's lock, which is one of the whole server.
pub(super) fn lock_name(session: SessionKey) -> String {
    format!("outbox:{:016x}", session.0)
}
