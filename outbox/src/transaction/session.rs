//! [`Session`]: one open transaction, from its beginning to its end.

use std::{sync::Arc, time::Duration};

use sqlx::{Pool, Transaction};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Lent, Reason, Tx, retrying_transaction::Settings};
use crate::store::{Database, NotCommitted, trusted};

/// How long the rollback of a dropped session may take before its connection is dropped.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// An open transaction, or `None` before it begins and after it ends. A session that is dropped
/// rolls back, and restores the settings of its connection.
pub(crate) struct Session<Db: Database>(Option<Transaction<'static, Db>>);

impl<Db: Database> Session<Db> {
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) async fn begin(pool: &Pool<Db>, settings: &Settings) -> Result<Self, sqlx::Error> {
        let sql = Db::begin_sql(settings.isolation, settings.is_read_only);
        let connection = pool.acquire().await?;
        // In a task, which completes even if the caller is dropped. sqlx rolls back only a
        // transaction whose `begin` it has seen succeed; a connection that is dropped earlier would
        // go back to the pool with an open transaction. If the caller was dropped, the task drops
        // the session, whose `drop` rolls back.
        let begin = async move {
            let begun = Transaction::begin(connection, Some(trusted(sql))).await;
            begun.map(|transaction| Self(Some(transaction)))
        };
        let panicked = |_| Err(sqlx::Error::WorkerCrashed);
        tokio::spawn(begin).await.unwrap_or_else(panicked)
    }

    pub(super) async fn commit(mut self, is_read_only: bool) -> Result<(), NotCommitted> {
        let Some(transaction) = self.0.take() else {
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
        let rollback = Db::rollback(self.0.take()?);
        let rolled_back = if Db::CHANGES_SESSION {
            tokio::spawn(rollback).await.ok()?
        } else {
            rollback.await
        };
        rolled_back.err().map(|error| Reason::of::<Db>(&error))
    }

    /// Lends the transaction to user code. `None` if there is none, or if it is lent already.
    pub(super) fn lend(slot: &Arc<Mutex<Self>>, attempt: u32) -> Option<Tx<'static, Db>> {
        let guard = Arc::clone(slot).try_lock_owned().ok()?;
        let transaction = OwnedMutexGuard::try_map(guard, |session| session.0.as_mut()).ok()?;
        Some(Tx::new(Lent::ToClosure(transaction), attempt))
    }
}

impl<Db: Database> Drop for Session<Db> {
    fn drop(&mut self) {
        let Some(transaction) = self.0.take() else {
            return;
        };
        // Without settings to restore, or without a runtime, sqlx rolls back by itself.
        if Db::CHANGES_SESSION
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // A statement that was dropped halfway may have made the connection unusable.
            let rollback = Db::rollback(transaction);
            runtime.spawn(tokio::time::timeout(ROLLBACK_TIMEOUT, rollback));
        }
    }
}
