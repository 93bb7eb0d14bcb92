//! [`Outbox`]: the stored outbox of one application.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use sqlx::Pool;

use crate::{
    config::{Config, Retention},
    operations::{Operations, health::Liveness},
    outbox::{OutboxBuilder, Result, clock::Clock, time::DatabaseTime},
    record::limits::Limits,
    registry::Registry,
    runtime::{fetch::Fetcher, settle::settler::Settler, signals},
    store::{self, Database, Statements, TableNames},
    transaction::Transactions,
};

/// The number of partitions into which keys are hashed. Each stored record has its partition, so
/// this number must never change.
pub(crate) const PARTITIONS: u16 = 64;

/// The stored outbox of one application. Cloning it is cheap: all clones share the same state.
///
/// ```
/// # use outbox::{outbox_handler, Outbox, OutboxEvent};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created", key = order_id)]
/// # struct OrderCreated { order_id: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use sqlx::sqlite::SqlitePoolOptions;
/// # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// # sqlx::query("create table orders (id integer)").execute(&pool).await?;
/// # use outbox::Registry;
/// let outbox = Outbox::builder(pool.clone()).registry(Registry::builder().allow_empty()).build().await?;
///
/// let mut tx = pool.begin().await?;
/// sqlx::query("insert into orders values (1)").execute(&mut *tx).await?;
/// outbox.publish(&mut tx, &OrderCreated { order_id: 1 }).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
pub struct Outbox<Db: Database> {
    pub(crate) inner: Arc<Shared<Db>>,
}

/// What all clones of an [`Outbox`] and its dispatcher share. The builder makes it; only the fields
/// with a lock or an atomic inside change afterwards.
pub(crate) struct Shared<Db: Database> {
    pub(crate) pool: Pool<Db>,
    pub(crate) names: TableNames,
    pub(crate) registry: Registry,
    pub(crate) config: Config,
    /// Publishing, operations and the watcher raise signals here; the event loop takes them.
    pub(crate) signals: Arc<signals::WakeSignals>,
    /// Whether a dispatcher of this outbox runs in this process.
    pub(crate) running: AtomicBool,
    /// The event loop writes it; the health probes read it.
    pub(crate) liveness: Arc<Liveness>,
    pub(super) time: DatabaseTime,
    /// Every statement of publishing and of the dispatcher on these tables.
    pub(crate) sql: Arc<Statements>,
    pub(super) limits: Limits,
    /// The `max_retries` of a record whose publisher gave none, if `retry.pin-at-schedule` is on.
    pub(super) pinned_max_retries: Option<u32>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) transactions: Transactions<Db>,
    /// `None`: forever.
    pub(crate) command_retention: Option<Duration>,
    /// `None`: forever.
    pub(crate) inbox_retention: Option<Duration>,
}

impl<Db: Database> Shared<Db> {
    pub(crate) fn fetcher(&self) -> Fetcher<Db> {
        Fetcher::new(self.pool.clone(), Arc::clone(&self.sql))
    }

    pub(crate) fn settler(&self) -> Settler<Db> {
        let (pool, sql) = (self.pool.clone(), Arc::clone(&self.sql));
        Settler::new(pool, sql, self.keeps_completed())
    }

    /// Whether completed records stay in the table for a time.
    pub(crate) fn keeps_completed(&self) -> bool {
        self.config.processing.retention != Retention::Delete
    }
}

impl<Db: Database> Outbox<Db> {
    /// A builder that starts with every handler that is linked into this program.
    pub fn builder(pool: Pool<Db>) -> OutboxBuilder<Db> {
        OutboxBuilder::new(pool)
    }

    /// The pool of this outbox.
    #[must_use]
    pub fn pool(&self) -> &Pool<Db> {
        &self.inner.pool
    }

    /// The clock of this outbox; see [`OutboxBuilder::clock`].
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// The handlers of this process.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// A report on every handler: id, event, policy, source of the policy, location in the code.
    #[must_use]
    pub fn handlers(&self) -> crate::registry::Report {
        self.inner.registry.handlers()
    }

    /// The interface for people on call: count, list, replay, discard, pause.
    #[must_use]
    pub fn operations(&self) -> Operations<'_, Db> {
        let Shared {
            pool,
            names,
            signals,
            ..
        } = &*self.inner;
        Operations {
            pool,
            names,
            signals: Some(signals),
        }
    }

    /// Creates or updates the tables. Does nothing if they are up to date. Many processes may call
    /// this at the same time.
    ///
    /// # Errors
    /// If the database fails, or if a newer version of this library has migrated the tables.
    pub async fn migrate(&self) -> Result<()> {
        let found = Db::migrate(&self.inner.pool, &self.inner.names).await?;
        tracing::info!(tables = %self.inner.names, found, "outbox tables are up to date");
        Ok(())
    }

    /// Tells the dispatcher of this process that a transaction was committed. Usually not needed:
    /// the dispatcher notices a [`publish`](Self::publish) of any process within milliseconds, and
    /// every other change within `poll-interval`.
    pub fn wake(&self) {
        self.inner.signals.raise(signals::Signal::Requested);
    }

    /// The statements of [`migrate`](Self::migrate), to be run by hand.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        store::printed(&Db::migrations(&self.inner.names))
    }
}

impl<Db: Database> Clone for Outbox<Db> {
    fn clone(&self) -> Self {
        let inner = Arc::clone(&self.inner);
        Self { inner }
    }
}

impl<Db: Database> fmt::Debug for Outbox<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("database", &Db::NAME)
            .field("tables", &self.inner.names)
            .finish_non_exhaustive()
    }
}
