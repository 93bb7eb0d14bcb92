//! [`Transactions`]: starts transactions on a pool.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use jiff::Timestamp;
use sqlx::Pool;

use super::{Budget, Inbox, RetryingTransaction, budget::Bucket, circuit::Reachability};
use crate::{
    outbox::{Outbox, clock, clock::Clock},
    store::{Database, TableNames},
    telemetry::trace::Rate,
};

/// Starts transactions on a pool. An [`Outbox`] has one and starts them with
/// [`Outbox::transaction`].
///
/// Clones share the [`Budget`] of each operation, and whether the database is reachable
/// ([`Circuit`](super::Circuit)). So keep one for each pool and clone it.
///
/// ```
/// use outbox::transaction::Transactions;
///
/// # async fn close(pool: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
/// let transactions = Transactions::new(pool);
/// transactions.transaction("CloseCase").run(async |mut tx| {
///     sqlx::query("update cases set closed = true").execute(&mut *tx).await?;
///     Ok::<_, sqlx::Error>(())
/// }).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it starts nothing by itself"]
pub struct Transactions<Db: Database> {
    pub(super) pool: Pool<Db>,
    pub(super) names: TableNames,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) shared: Arc<Shared>,
}

impl<Db: Database> Transactions<Db> {
    /// Transactions on this pool. Commands and the inbox need the tables of an [`Outbox`] with the
    /// default table names.
    pub fn new(pool: Pool<Db>) -> Self {
        Self::with_names(pool, TableNames::default(), Arc::new(clock::SystemClock))
    }

    pub(crate) fn with_names(pool: Pool<Db>, names: TableNames, clock: Arc<dyn Clock>) -> Self {
        Self {
            pool,
            names,
            clock,
            shared: Arc::default(),
        }
    }

    /// The clock of deadlines, budgets and probes. Its [`sleep`](Clock::sleep) waits between
    /// attempts.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// A transaction of this operation. The operation is a name from the source code; it appears
    /// in log lines and metrics, and all calls of one operation share a [`Budget`].
    pub fn transaction(&self, operation: &'static str) -> RetryingTransaction<Db> {
        RetryingTransaction::new(self.clone(), operation)
    }

    /// The inbox: it distinguishes new messages from repeated ones.
    #[must_use]
    pub fn inbox(&self) -> Inbox<'_, Db> {
        Inbox { transactions: self }
    }
}

impl<Db: Database> Outbox<Db> {
    /// A transaction that is retried as a whole; see [`transaction`](crate::transaction). The
    /// operation is as in [`Transactions::transaction`].
    pub fn transaction(&self, operation: &'static str) -> RetryingTransaction<Db> {
        self.inner.transactions.transaction(operation)
    }

    /// The inbox: it distinguishes new messages from repeated ones.
    #[must_use]
    pub fn inbox(&self) -> Inbox<'_, Db> {
        self.inner.transactions.inbox()
    }
}

impl<Db: Database> Clone for Transactions<Db> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            names: self.names.clone(),
            clock: Arc::clone(&self.clock),
            shared: Arc::clone(&self.shared),
        }
    }
}

/// The state that all clones share. Its locks are never held across an `await`.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// By operation. Operations are names from the source code, so the map stays small.
    buckets: Mutex<HashMap<&'static str, Bucket>>,
    database: Mutex<Reachability>,
    /// The gauge of the circuit has a value.
    pub(super) shows_circuit: AtomicBool,
    /// Limits how many retries are logged at `INFO`.
    pub(super) logged_retries: Rate,
    /// Limits how many refused calls are logged at `WARN`.
    pub(super) logged_refusals: Rate,
}

impl Shared {
    /// Calls a method of [`Bucket`] on that of this operation, which is full at first.
    pub(super) fn with_bucket<R>(
        &self,
        operation: &'static str,
        budget: Budget,
        now: Timestamp,
        change: impl FnOnce(&mut Bucket, Budget, Timestamp) -> R,
    ) -> R {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets
            .entry(operation)
            .or_insert_with(|| Bucket::full(budget, now));
        change(bucket, budget, now)
    }

    pub(super) fn database(&self) -> MutexGuard<'_, Reachability> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
