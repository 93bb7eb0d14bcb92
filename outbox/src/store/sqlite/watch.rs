//! Signs of other processes in SQLite: whether the file has changed.

use std::{future::pending, time::Duration};

use sqlx::{Sqlite, SqlitePool, pool::PoolConnection};
use uuid::Uuid;

use super::SqliteStatements;
use crate::store::{Notification, PollResult, SessionKey, WatchSql, columns::read_one};

/// The connection, and what was seen last.
#[derive(Debug)]
pub struct SqliteLine {
    connection: PoolConnection<Sqlite>,
    /// The version of the file at which it was seen. Another connection's commit changes it.
    version: i64,
    seen: PollResult,
}

impl WatchSql for Sqlite {
    type WatchConnection = SqliteLine;

    const HAS_SESSION_LOCKS: bool = false;
    const HAS_NOTIFICATIONS: bool = false;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(100);

    async fn open(pool: &SqlitePool, _: &SqliteStatements) -> Result<SqliteLine, sqlx::Error> {
        let mut connection = pool.acquire().await?;
        // The version counts for one connection.
        connection.close_on_drop();
        Ok(SqliteLine {
            connection,
            version: -1,
            seen: PollResult::default(),
        })
    }

    async fn lock_session(_: &mut SqliteLine, _: SessionKey) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn advertise(
        _: &mut SqliteLine,
        _: &SqliteStatements,
        _: Uuid,
        _: Option<SessionKey>,
    ) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn poll(
        line: &mut SqliteLine,
        sql: &SqliteStatements,
        owner: Uuid,
        _: Option<SessionKey>,
        highest: i64,
    ) -> Result<PollResult, sqlx::Error> {
        // Asked first: whatever is committed in between is seen at the next look.
        let version: i64 = sqlx::query_scalar("pragma data_version")
            .fetch_one(&mut *line.connection)
            .await?;
        if version == line.version {
            return Ok(line.seen.clone());
        }
        let row = sqlx::query(sql.poll.clone())
            .bind(highest)
            .bind(owner)
            .fetch_one(&mut *line.connection)
            .await?;
        line.version = version;
        line.seen = read_one(&row)?;
        Ok(line.seen.clone())
    }

    async fn reap_lost(
        _: &mut SqliteLine,
        _: &SqliteStatements,
        _: Uuid,
    ) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn next_notification(_: &mut SqliteLine) -> Result<Notification, sqlx::Error> {
        pending().await
    }
}
