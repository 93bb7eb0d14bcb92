//! [`Session`]: one open transaction, from its beginning to its end.

use std::{sync::Arc, time::Duration};

use sqlx::{Connection as _, Pool, Transaction};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};

use super::{Lent, Reason, Tx, attempt::Reached, log, retrying_transaction::Settings};
use crate::store::{Database, NotCommitted};

/// How long the caller waits until an attempt that was stopped is rolled back. After that the task
/// continues alone.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the server may take to end a statement, before the rollback waits for the statement
/// itself.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a rollback may take before its connection is dropped. Longer than the default of
/// `innodb_lock_wait_timeout`, which ends a statement that could not be interrupted.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(60);

/// An open transaction, or `None` before it begins and after it ends. A session that is dropped
/// ends its running statement, rolls back, and restores the settings of its connection.
pub(crate) struct Session<Db: Database>(Option<Open<Db>>);

struct Open<Db: Database> {
    transaction: Transaction<'static, Db>,
    interrupt: Db::Interrupt,
    pool: Pool<Db>,
}

impl<Db: Database> Open<Db> {
    /// Ends the statement that a dropped future left behind, then rolls back. The connection goes
    /// back to the pool only afterwards: nothing ends a statement of its next user.
    async fn stop(mut self) {
        let interrupt = Db::interrupt(&self.pool, &self.interrupt);
        match timeout(INTERRUPT_TIMEOUT, interrupt).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => log::not_interrupted(Reason::of::<Db>(&error)),
            Err(_) => log::not_interrupted(Reason::StatementTimeout),
        }
        let rollback = async {
            // Receives the error of the statement that was ended, which the rollback would return.
            let _ = self.transaction.ping().await;
            Db::rollback(self.transaction).await
        };
        // If it fails or takes too long, the connection is closed, and the database rolls back.
        let _ = timeout(ROLLBACK_TIMEOUT, rollback).await;
    }
}

impl<Db: Database> Session<Db> {
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Begins a transaction. Where its beginning takes a lock, it waits for `limit` at most. Sets
    /// `reached` when the pool has given a connection.
    pub(super) async fn begin(
        pool: &Pool<Db>,
        settings: &Settings,
        limit: Option<Duration>,
        reached: &mut Reached,
    ) -> Result<Self, sqlx::Error> {
        let sql = Db::begin_sql(settings.isolation, settings.is_read_only);
        let connection = pool.acquire().await?;
        *reached = Reached::Connection;
        let pool = pool.clone();
        // In a task, which completes even if the caller is dropped. sqlx rolls back only a
        // transaction whose `begin` it has seen succeed; a connection that is dropped earlier would
        // go back to the pool with an open transaction. If the caller was dropped, the task drops
        // the session, whose `drop` rolls back.
        let begin = async move {
            let (transaction, interrupt) = Db::begin_attempt(connection, sql, limit).await?;
            Ok(Self(Some(Open {
                transaction,
                interrupt,
                pool,
            })))
        };
        let panicked = |_| Err(sqlx::Error::WorkerCrashed);
        tokio::spawn(begin).await.unwrap_or_else(panicked)
    }

    pub(super) async fn commit(mut self, is_read_only: bool) -> Result<(), NotCommitted> {
        let Some(Open { transaction, .. }) = self.0.take() else {
            return Ok(());
        };
        let commit = Db::commit(transaction, is_read_only);
        if Db::CHANGES_SESSION {
            // In a task, so that the settings are restored even if the caller is dropped.
            let panicked = |_| Err(NotCommitted::during(sqlx::Error::WorkerCrashed));
            return tokio::spawn(commit).await.unwrap_or_else(panicked);
        }
        commit.await
    }

    /// Returns the reason if the rollback failed. Then the connection is closed, and the database
    /// rolls back.
    pub(super) async fn rollback(mut self) -> Option<Reason> {
        let rollback = Db::rollback(self.0.take()?.transaction);
        let rolled_back = if Db::CHANGES_SESSION {
            tokio::spawn(rollback).await.ok()?
        } else {
            rollback.await
        };
        rolled_back.err().map(|error| Reason::of::<Db>(&error))
    }

    /// Ends the running statement and rolls back, after the work of the attempt was dropped.
    pub(super) async fn stop(mut self) {
        if let Some(open) = self.0.take() {
            // In a task, so that the connection is cleaned up even if it takes longer.
            let _ = timeout(STOP_TIMEOUT, tokio::spawn(open.stop())).await;
        }
    }

    /// Lends the transaction to user code. `None` if there is none, or if it is lent already.
    pub(super) fn lend(slot: &Arc<Mutex<Self>>, attempt: u32) -> Option<Tx<'static, Db>> {
        let guard = Arc::clone(slot).try_lock_owned().ok()?;
        let transaction = OwnedMutexGuard::try_map(guard, |session| {
            session.0.as_mut().map(|open| &mut open.transaction)
        });
        let transaction = transaction.ok()?;
        Some(Tx::new(Lent::ToClosure(transaction), attempt))
    }
}

impl<Db: Database> Drop for Session<Db> {
    fn drop(&mut self) {
        // Without a runtime sqlx rolls back by itself.
        if let Some(open) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(open.stop());
        }
    }
}
