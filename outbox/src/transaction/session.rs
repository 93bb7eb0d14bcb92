//! One open transaction: what the closure gets of it, and how it ends.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use sqlx::{Pool, Transaction};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Isolation, Reason};
use crate::store::{Database, NotCommitted, trusted};

/// The transaction of one attempt, as the closure gets it. It is a connection: use it as
/// `&mut *tx`, and give it to [`publish`](crate::outbox::Outbox::publish) as `&mut tx`.
///
/// There is nothing else to write with, so nothing can be written outside of the transaction by
/// accident, and no part of it can be tried again for itself: a closure that goes on after a
/// statement that ended the transaction does not commit anything.
///
/// ```
/// use outbox::transaction::Tx;
///
/// async fn approve(tx: &mut Tx<sqlx::Sqlite>, case: i64) -> Result<(), sqlx::Error> {
///     println!("attempt {}", tx.attempt());
///     let update = sqlx::query("update cases set approved = true where id = ?1").bind(case);
///     update.execute(&mut **tx).await?;
///     Ok(())
/// }
/// ```
pub struct Tx<Db: Database> {
    guard: OwnedMutexGuard<Session<Db>>,
    attempt: u32,
}

impl<Db: Database> Tx<Db> {
    /// Which attempt this is, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}

impl<Db: Database> Deref for Tx<Db> {
    type Target = Db::Connection;

    #[expect(clippy::expect_used, reason = "see `Session`")]
    fn deref(&self) -> &Self::Target {
        self.guard.0.as_ref().expect("it is open")
    }
}

impl<Db: Database> DerefMut for Tx<Db> {
    #[expect(clippy::expect_used, reason = "see `Session`")]
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.guard.0.as_mut().expect("it is open")
    }
}

impl<Db: Database> fmt::Debug for Tx<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx")
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// How long the end of a transaction that was dropped is waited for.
const UNANSWERED: Duration = Duration::from_secs(5);

/// An open transaction, or none for the moment in which it ends by value. Dropped, it is rolled
/// back, with nothing left behind in its session.
pub(crate) struct Session<Db: Database>(Option<Transaction<'static, Db>>);

impl<Db: Database> Session<Db> {
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) async fn begin(
        pool: &Pool<Db>,
        isolation: Option<Isolation>,
        read_only: bool,
    ) -> Result<Self, sqlx::Error> {
        let sql = Db::begin_sql(isolation, read_only);
        let connection = pool.acquire().await?;
        // Whole, also if the caller goes away meanwhile: sqlx rolls back only what it knows to have
        // begun, and half begun, a session would go back to the pool with an open transaction.
        whole(true, async move {
            let begun = Transaction::begin(connection, Some(trusted(sql))).await;
            begun.map(|transaction| Self(Some(transaction)))
        })
        .await
        .unwrap_or(Err(sqlx::Error::WorkerCrashed))
    }

    pub(crate) fn connection(&mut self) -> Option<&mut Db::Connection> {
        self.0.as_deref_mut()
    }

    pub(crate) async fn commit(mut self, read_only: bool) -> Result<(), NotCommitted> {
        let Some(transaction) = self.0.take() else {
            return Ok(());
        };
        let commit = Db::commit(transaction, read_only);
        whole(Db::CHANGES_SESSION, commit)
            .await
            .unwrap_or_else(|| Err(NotCommitted::during(sqlx::Error::WorkerCrashed)))
    }

    /// Why it failed, if it did: then the connection is of no use, and its end is the
    /// transaction's.
    pub(crate) async fn rollback(mut self) -> Option<Reason> {
        let transaction = self.0.take()?;
        let rolled_back = whole(Db::CHANGES_SESSION, Db::rollback(transaction)).await?;
        rolled_back.err().map(|error| Reason::of::<Db>(&error))
    }

    /// For the closure. `None` if somebody has it.
    pub(crate) fn lend(slot: &Arc<Mutex<Self>>, attempt: u32) -> Option<Tx<Db>> {
        let guard = Arc::clone(slot).try_lock_owned().ok()?;
        Some(Tx { guard, attempt })
    }
}

impl<Db: Database> Drop for Session<Db> {
    fn drop(&mut self) {
        let Some(transaction) = self.0.take() else {
            return;
        };
        // Otherwise its own `drop` rolls it back.
        if Db::CHANGES_SESSION
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // What it was doing when it was dropped may have left the connection unusable.
            runtime.spawn(tokio::time::timeout(UNANSWERED, Db::rollback(transaction)));
        }
    }
}

/// To its end, even if the caller is dropped, where that is asked for. `None` if it panicked.
async fn whole<T: Send + 'static>(
    asked: bool,
    future: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    if asked {
        return tokio::spawn(future).await.ok();
    }
    Some(future.await)
}
