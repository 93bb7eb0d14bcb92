//! Signs of other processes in SQLite: whether the file has changed.

use std::time::Duration;

use sqlx::{Sqlite, SqliteConnection, SqlitePool, pool::PoolConnection};
use uuid::Uuid;

use crate::store::{PollResult, SessionKey, Statements, WatchSql, call::rows, columns::read_one};

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

    async fn open(pool: &SqlitePool, _: &Statements) -> Result<SqliteLine, sqlx::Error> {
        let mut connection = pool.acquire().await?;
        // The version counts for one connection.
        connection.close_on_drop();
        Ok(SqliteLine {
            connection,
            version: -1,
            seen: PollResult::default(),
        })
    }

    async fn connection(line: &mut SqliteLine) -> Result<&mut SqliteConnection, sqlx::Error> {
        Ok(&mut line.connection)
    }

    async fn poll(
        line: &mut SqliteLine,
        sql: &Statements,
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
        let poll = sql.poll.bind("owner", owner).bind("highest", highest);
        let rows = rows::<Self>(&mut line.connection, poll).await?;
        line.version = version;
        line.seen = read_one(rows.first().ok_or(sqlx::Error::RowNotFound)?)?;
        Ok(line.seen.clone())
    }
}
