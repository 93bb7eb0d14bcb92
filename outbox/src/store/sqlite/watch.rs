//! How the watcher notices other processes in SQLite: the version of the file changes.

use std::time::Duration;

use sqlx::{Sqlite, SqliteConnection, SqlitePool, pool::PoolConnection};
use uuid::Uuid;

use crate::store::{PollResult, SessionKey, Statements, WatchSql, call::rows, columns::read_one};

/// The connection, and the result of the last poll.
#[derive(Debug)]
pub struct SqliteWatchConnection {
    connection: PoolConnection<Sqlite>,
    /// The version of the file at the last poll. The commit of another connection changes it.
    file_version: i64,
    last_result: PollResult,
}

impl WatchSql for Sqlite {
    type WatchConnection = SqliteWatchConnection;

    const HAS_SESSION_LOCKS: bool = false;
    const HAS_NOTIFICATIONS: bool = false;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(100);

    async fn open(pool: &SqlitePool, _: &Statements) -> Result<SqliteWatchConnection, sqlx::Error> {
        let mut connection = pool.acquire().await?;
        // Versions of two connections cannot be compared.
        connection.close_on_drop();
        Ok(SqliteWatchConnection {
            connection,
            file_version: -1,
            last_result: PollResult::default(),
        })
    }

    async fn connection(
        watch: &mut SqliteWatchConnection,
    ) -> Result<&mut SqliteConnection, sqlx::Error> {
        Ok(&mut watch.connection)
    }

    async fn poll(
        watch: &mut SqliteWatchConnection,
        sql: &Statements,
        owner: Uuid,
        _: Option<SessionKey>,
        highest_id: i64,
    ) -> Result<PollResult, sqlx::Error> {
        // The version is read first: the next poll then sees a commit between the two statements.
        let version: i64 = sqlx::query_scalar("pragma data_version")
            .fetch_one(&mut *watch.connection)
            .await?;
        if version == watch.file_version {
            return Ok(watch.last_result.clone());
        }
        let poll = sql.poll.bind("owner", owner).bind("highest_id", highest_id);
        let rows = rows::<Self>(&mut watch.connection, poll).await?;
        watch.file_version = version;
        watch.last_result = read_one(rows.first().ok_or(sqlx::Error::RowNotFound)?)?;
        Ok(watch.last_result.clone())
    }
}
