//! Retried transactions on SQLite.
//!
//! A transaction that writes waits only once, in its first statement: for the lock of the only writer.
//! During that statement the busy timeout of the connection is not longer than the attempt may take.
//! A statement that computes for too long is ended by a progress handler.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{
    Executor as _, Row as _, Sqlite, SqliteConnection, SqlitePool, Transaction,
    error::DatabaseError, pool::PoolConnection,
};

use crate::{
    store::{NotCommitted, TransactSql, trusted},
    transaction::{Isolation, Reason},
};

/// How often SQLite calls the progress handler: after this many instructions of its virtual machine,
/// which are about ten microseconds.
const INSTRUCTIONS: i32 = 1000;

impl TransactSql for Sqlite {
    /// The progress handler belongs to the session.
    const CHANGES_SESSION: bool = true;
    const BEGIN_WAITS: bool = true;

    /// While it is true, the progress handler ends every statement of the connection.
    type Interrupt = Arc<AtomicBool>;

    /// SQLite has only serializable transactions. A transaction that writes is the only writer from
    /// its start, so nothing that it has read can change before it writes.
    fn begin_sql(_: Option<Isolation>, read_only: bool) -> String {
        let kind = if read_only { "deferred" } else { "immediate" };
        format!("begin {kind}")
    }

    async fn begin_attempt(
        mut connection: PoolConnection<Self>,
        begin_sql: String,
        limit: Option<Duration>,
    ) -> Result<(Transaction<'static, Self>, Self::Interrupt), sqlx::Error> {
        let limit = limit.map(|limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
        let configured = match limit {
            Some(limit) => lower_busy_timeout(&mut connection, limit).await?,
            None => None,
        };
        // Not by sqlx: if it failed, it would keep the connection, with the lower busy timeout.
        let begun = connection.execute(trusted(begin_sql)).await;
        if let Some(configured) = configured {
            set_busy_timeout(&mut connection, configured).await?;
        }
        begun?;
        let interrupt = Arc::new(AtomicBool::new(false));
        let is_interrupted = Arc::clone(&interrupt);
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(INSTRUCTIONS, move || {
            !is_interrupted.load(Ordering::Relaxed)
        });
        drop(handle);
        // The transaction has begun; sqlx only has to know that.
        let transaction =
            Transaction::begin(connection, Some(trusted("select 1".to_owned()))).await?;
        Ok((transaction, interrupt))
    }

    async fn interrupt(_: &SqlitePool, interrupt: &Arc<AtomicBool>) -> Result<(), sqlx::Error> {
        interrupt.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn commit(
        mut transaction: Transaction<'static, Self>,
        read_only: bool,
    ) -> Result<(), NotCommitted> {
        let freed = remove_handler(&mut transaction).await;
        freed.map_err(NotCommitted::before)?;
        if read_only {
            return transaction.rollback().await.map_err(NotCommitted::before);
        }
        // If SQLite itself has ended the transaction, `commit` fails.
        transaction.commit().await.map_err(NotCommitted::during)
    }

    async fn rollback(mut transaction: Transaction<'static, Self>) -> Result<(), sqlx::Error> {
        remove_handler(&mut transaction).await?;
        // SQLite ends the transaction when it ends a statement that writes. Then sqlx would find
        // nothing to roll back, and the connection would be unusable. If the transaction is open,
        // this fails and changes nothing.
        let _ = transaction.execute("begin deferred").await;
        transaction.rollback().await
    }

    fn reason(error: &dyn DatabaseError) -> Reason {
        let code = error.code().and_then(|code| code.parse().ok());
        let code: i32 = code.unwrap_or(0);
        match code {
            517 => Reason::SerializationFailure, // busy: a row that was read has changed
            2067 | 1555 | 2579 => Reason::UniqueViolation,
            787 => Reason::ForeignKeyViolation,
            275 => Reason::CheckViolation,
            1299 => Reason::NotNullViolation,
            _ => match code & 0xff {
                5 | 6 => Reason::Busy,
                9 => Reason::StatementTimeout, // interrupted
                14 => Reason::ConnectionLost,  // cannot open
                3 | 8 | 23 => Reason::PermissionDenied,
                1 => by_text(error.message()),
                _ => Reason::Other,
            },
        }
    }
}

/// Waits until no statement runs.
async fn remove_handler(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    connection.lock_handle().await?.remove_progress_handler();
    Ok(())
}

/// Lowers the busy timeout of the connection to this number of milliseconds. Returns the old one if
/// it was longer.
async fn lower_busy_timeout(
    connection: &mut SqliteConnection,
    limit: i64,
) -> Result<Option<i64>, sqlx::Error> {
    let found = connection.fetch_one("pragma busy_timeout").await?;
    let configured: i64 = found.try_get(0)?;
    if configured <= limit {
        return Ok(None);
    }
    set_busy_timeout(connection, limit).await?;
    Ok(Some(configured))
}

async fn set_busy_timeout(
    connection: &mut SqliteConnection,
    millis: i64,
) -> Result<(), sqlx::Error> {
    let sql = format!("pragma busy_timeout = {millis}");
    connection.execute(trusted(sql)).await?;
    Ok(())
}

/// SQLite has one code for many errors. Only the text distinguishes them.
fn by_text(message: &str) -> Reason {
    if message.starts_with("no such") || message.contains("has no column named") {
        Reason::MissingObject
    } else if message.contains("syntax error") || message.contains("incomplete input") {
        Reason::SyntaxError
    } else if message.contains("no transaction is active") {
        Reason::Aborted
    } else {
        Reason::Other
    }
}
