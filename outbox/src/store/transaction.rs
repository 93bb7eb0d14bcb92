//! How a retried transaction begins and ends on a database, and what its errors mean.

use std::time::Duration;

use sqlx::{Pool, Transaction, error::DatabaseError, pool::PoolConnection};

use crate::transaction::{Isolation, Reason};

/// How a transaction begins and ends, and what its errors mean.
pub trait TransactSql: sqlx::Database {
    /// Whether a retried transaction changes settings of its session. If so, the connection must not
    /// return to the pool without [`rollback`](Self::rollback), not even when a future is dropped.
    #[doc(hidden)]
    const CHANGES_SESSION: bool = false;

    /// Whether the beginning of a transaction waits for other transactions.
    #[doc(hidden)]
    const BEGIN_WAITS: bool = false;

    /// Names the session of an attempt, so that its running statement can be ended from outside.
    #[doc(hidden)]
    type Interrupt: Send + Sync + 'static;

    /// The statement that begins a transaction.
    #[doc(hidden)]
    fn begin_sql(isolation: Option<Isolation>, read_only: bool) -> String;

    /// Begins a transaction. Where the beginning waits for a lock, it waits for `limit` at most.
    #[doc(hidden)]
    fn begin_attempt(
        connection: PoolConnection<Self>,
        begin_sql: String,
        limit: Option<Duration>,
    ) -> impl Future<Output = Result<(Transaction<'static, Self>, Self::Interrupt), sqlx::Error>> + Send;

    /// Ends the statement that runs in this session, if one runs. Its transaction stays open, and its
    /// connection stays usable. When this returns, no later statement of the session is ended.
    #[doc(hidden)]
    fn interrupt(
        pool: &Pool<Self>,
        interrupt: &Self::Interrupt,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Commits. Fails if a failed statement ended the transaction and the closure ignored the error.
    /// Rolls back a read-only transaction where the database cannot enforce that it only reads.
    #[doc(hidden)]
    fn commit(
        transaction: Transaction<'static, Self>,
        read_only: bool,
    ) -> impl Future<Output = Result<(), NotCommitted>> + Send;

    /// Rolls back, and restores the settings of the session.
    #[doc(hidden)]
    fn rollback(
        transaction: Transaction<'static, Self>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Classifies an error of this database.
    #[doc(hidden)]
    fn reason(error: &dyn DatabaseError) -> Reason;
}

/// Executes a statement on an idle connection of the pool. If there is none, or if it fails, on a new
/// connection: all connections of the pool may be waiting for the lock that ends with this statement.
#[cfg(any(feature = "postgres", feature = "mysql"))]
macro_rules! execute_elsewhere {
    ($pool:expr, $connection:ty, $sql:expr) => {{
        let (pool, sql): (&sqlx::Pool<_>, String) = ($pool, $sql);
        if let Some(mut idle) = pool.try_acquire()
            && idle
                .execute(sqlx::raw_sql($crate::store::trusted(sql.clone())))
                .await
                .is_ok()
        {
            return Ok(());
        }
        let mut new =
            <$connection as sqlx::Connection>::connect_with(&pool.connect_options()).await?;
        new.execute(sqlx::raw_sql($crate::store::trusted(sql)))
            .await?;
        sqlx::Connection::close(new).await
    }};
}
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use execute_elsewhere;

/// A commit that the database did not confirm.
#[derive(Debug)]
pub struct NotCommitted {
    /// Whether the commit may have been sent.
    pub(crate) commit_sent: bool,
    pub(crate) source: sqlx::Error,
}

impl NotCommitted {
    pub(crate) fn before(source: sqlx::Error) -> Self {
        Self {
            commit_sent: false,
            source,
        }
    }

    pub(crate) fn during(source: sqlx::Error) -> Self {
        Self {
            commit_sent: true,
            source,
        }
    }
}
