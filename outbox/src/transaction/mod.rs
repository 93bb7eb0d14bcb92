//! Transactions that are tried again as a whole, commands that are done once, and an inbox.
//!
//! Retrying a transaction is safe under three conditions: the failure is one that passes, all of
//! the transaction is repeated, and repeating it does no harm. The first two are seen to here. For
//! the third **the closure may run more than once**:
//!
//! - What it does to the outside world would be done again. Publish an event instead: it is part
//!   of the transaction.
//! - Ids, random numbers and times that are to be the same in each attempt are made before it.
//! - If the connection is lost while the database commits, nobody knows whether it has. With a
//!   [`command_id`](RetryingTransaction::command_id) the result is stored in the same transaction,
//!   and a repetition finds it.
//!
//! ```
//! # use outbox::{Outbox, OutboxEvent, Registry};
//! use std::time::Duration;
//! use outbox::transaction::{Deadline, Isolation, TxRetry};
//!
//! # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
//! # #[outbox_event(name = "case.approved", key = case)]
//! # struct CaseApproved { case: i64 }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
//! # sqlx::query("create table cases (id integer, approved bool)").execute(&pool).await?;
//! # let outbox = Outbox::builder(pool).registry(Registry::builder().allow_empty()).build().await?;
//! let case = 7;
//! let approved: u64 = outbox
//!     .transaction("ApproveCase")
//!     .isolation(Isolation::Serializable)
//!     .deadline(Deadline::after(Duration::from_secs(3)))
//!     .policy(TxRetry::interactive())
//!     .command_id("6f1c2e") // the caller's; the same when it asks again
//!     .request(&case)
//!     .run(async |mut tx| {
//!         let update = sqlx::query("update cases set approved = true where id = ?1").bind(case);
//!         let done = update.execute(&mut *tx).await?;
//!         outbox.publish(&mut tx, &CaseApproved { case }).await?;
//!         Ok::<_, anyhow::Error>(done.rows_affected())
//!     })
//!     .await?;
//! # assert_eq!(approved, 0);
//! # Ok(())
//! # }
//! ```

mod attempt;
mod budget;
mod builder;
mod circuit;
mod classify;
mod command;
mod deadline;
mod decide;
mod error;
mod inbox;
mod isolation;
mod line;
mod observer;
mod run;
mod session;
mod sleeper;
mod tier;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sqlx::Pool;

pub use budget::Budget;
pub use builder::{RetryingTransaction, WithCommand, WithoutCommand};
pub use classify::Reason;
pub use deadline::Deadline;
pub use error::{Cause, ClosureError, CommandError, Stopped, TransactionError};
pub use inbox::{Inbox, Seen};
pub use isolation::Isolation;
pub use observer::Observer;
pub use session::Tx;
pub use sleeper::Sleeper;
pub use tier::TxRetry;

use self::{budget::Bucket, circuit::Circuit};
use crate::{
    outbox::{
        Outbox,
        clock::{Clock, SystemClock},
    },
    store::{Database, TableNames},
    telemetry::{metrics::Metered, trace::Rate},
};

/// Starts transactions on a pool; an [`Outbox`] has one, and
/// [`transaction`](Outbox::transaction) is the short way to it.
///
/// Clones share what the callers of an operation have together: their [`Budget`], and what is
/// known of the database being unreachable. So keep one for each pool.
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
#[must_use = "it starts nothing by itself"]
pub struct Transactions<Db: Database> {
    pub(crate) pool: Pool<Db>,
    pub(crate) names: TableNames,
    clock: Arc<dyn Clock>,
    sleeper: Arc<dyn Sleeper>,
    observer: Arc<dyn Observer>,
    shared: Arc<Shared>,
}

/// What the clones know together. Locked for moments, never across an `await`.
#[derive(Debug, Default)]
struct Shared {
    /// By operation; names in the source, so there are few.
    buckets: Mutex<HashMap<&'static str, Bucket>>,
    circuit: Mutex<Circuit>,
    /// How many retries are logged.
    retries: Rate,
}

impl Shared {
    fn buckets(&self) -> MutexGuard<'_, HashMap<&'static str, Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Db: Database> Transactions<Db> {
    /// On this pool. Commands and the inbox need the tables of an [`Outbox`] with the usual names.
    pub fn new(pool: Pool<Db>) -> Self {
        Self::with_names(pool, TableNames::usual())
    }

    pub(crate) fn with_names(pool: Pool<Db>, names: TableNames) -> Self {
        Self {
            pool,
            names,
            clock: Arc::new(SystemClock),
            sleeper: Arc::new(sleeper::TokioSleeper),
            observer: metered(Arc::new(observer::Nobody)),
            shared: Arc::default(),
        }
    }

    /// What tells the time for deadlines, budgets and probes.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// As the builder of an outbox was told.
    pub(crate) fn told(
        self,
        clock: Arc<dyn Clock>,
        sleeper: Option<Arc<dyn Sleeper>>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self {
            clock,
            sleeper: sleeper.unwrap_or(self.sleeper),
            observer: observer.map_or(self.observer, metered),
            ..self
        }
    }

    /// What waits between attempts.
    pub fn sleeper(mut self, sleeper: impl Sleeper + 'static) -> Self {
        self.sleeper = Arc::new(sleeper);
        self
    }

    /// Who is told what happens.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = metered(Arc::new(observer));
        self
    }

    /// A transaction of this operation: a name from the source, for logs, metrics and the budget
    /// that its callers share.
    pub fn transaction(&self, operation: &'static str) -> RetryingTransaction<Db> {
        RetryingTransaction::new(self.clone(), operation)
    }

    /// Messages that are handled once, however often they arrive.
    #[must_use]
    pub fn inbox(&self) -> Inbox<'_, Db> {
        Inbox::new(&self.names)
    }
}

/// Metrics first, then the caller's own.
fn metered(observer: Arc<dyn Observer>) -> Arc<dyn Observer> {
    Arc::new(Metered(observer))
}

impl<Db: Database> Outbox<Db> {
    /// A transaction that is tried again as a whole; see [`transaction`](crate::transaction).
    ///
    /// The operation is a name from the source, for logs, metrics and the budget that its callers
    /// share.
    pub fn transaction(&self, operation: &'static str) -> RetryingTransaction<Db> {
        self.inner.transactions.transaction(operation)
    }

    /// Messages that are handled once, however often they arrive.
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
            sleeper: Arc::clone(&self.sleeper),
            observer: Arc::clone(&self.observer),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<Db: Database> fmt::Debug for Transactions<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactions")
            .field("database", &Db::NAME)
            .field("observer", &self.observer)
            .finish_non_exhaustive()
    }
}
