//! [`Outbox`]: the stored outbox of one application.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use sqlx::Pool;
use tokio::sync::OnceCell;

use crate::{
    config::{Config, Retention},
    operations::{Operations, health::Liveness},
    outbox::{
        DbContext as _, Error, Operation, OutboxBuilder, Result, clock::Clock, time::DatabaseTime,
    },
    record::limits::Limits,
    registry::Registry,
    runtime::{fetch::Fetcher, settle::settler::Settler, signals},
    store::{self, Database, Statements, TableNames},
    transaction::Transactions,
};

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

/// The state that all clones of an [`Outbox`] and its dispatcher share. The builder makes it. Only fields
/// with a lock or an atomic inside change afterwards.
pub(crate) struct Shared<Db: Database> {
    pub(crate) pool: Pool<Db>,
    pub(crate) names: TableNames,
    pub(crate) registry: Registry,
    pub(crate) config: Config,
    /// Publishing, operations and the watcher raise signals here; the event loop takes them.
    pub(crate) signals: Arc<signals::WakeSignals>,
    /// Whether a dispatcher of this outbox runs in this process.
    pub(crate) is_running: AtomicBool,
    /// The event loop writes it; the health probes read it.
    pub(crate) liveness: Arc<Liveness>,
    pub(super) time: DatabaseTime,
    /// Every statement of publishing and of the dispatcher on these tables.
    pub(crate) sql: Arc<Statements>,
    pub(super) limits: Limits,
    /// The number of partitions into which keys are hashed, as the tables have it. Read once.
    pub(super) partitions: OnceCell<u16>,
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

    /// The number of partitions into which keys are hashed. The tables have it since they were made, so
    /// all processes agree. The first caller reads it with its own connection.
    pub(crate) async fn partitions(
        &self,
        connection: &mut Db::Connection,
        operation: Operation,
    ) -> Result<u16> {
        let read = async || {
            let count = Db::partition_count(connection, &self.sql).await;
            match count.during(operation)? {
                0 => Err(Error::NoPartitions {
                    tables: self.names.to_string(),
                }),
                count => Ok(count),
            }
        };
        self.partitions.get_or_try_init(read).await.copied()
    }

    /// The number of partitions, once it was read. The start of a dispatcher reads it.
    pub(crate) fn known_partitions(&self) -> u16 {
        self.partitions.get().copied().unwrap_or_default()
    }

    /// Reads the number of partitions with a connection of the pool, unless it is known.
    pub(crate) async fn read_partitions(&self) -> Result<u16> {
        if let Some(known) = self.partitions.get() {
            return Ok(*known);
        }
        let mut connection = self.pool.acquire().await.during(Operation::Migrate)?;
        self.partitions(&mut connection, Operation::Migrate).await
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
        let partitions = self.inner.config.schema_initialization.partitions;
        let found = Db::migrate(&self.inner.pool, &self.inner.names, partitions).await?;
        tracing::info!(tables = %self.inner.names, found, "outbox tables are up to date");
        Ok(())
    }

    /// Wakes the dispatcher of this process, after a transaction was committed. Usually not needed:
    /// the dispatcher notices a [`publish`](Self::publish) of any process within milliseconds, and
    /// every other change within `poll-interval`.
    pub fn wake(&self) {
        self.inner.signals.raise(signals::Signal::Requested);
    }

    /// The statements of [`migrate`](Self::migrate), to be run by hand.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        let partitions = self.inner.config.schema_initialization.partitions;
        store::as_script(&Db::migrations(&self.inner.names, partitions))
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
