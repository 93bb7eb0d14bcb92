//! [`Outbox`]: the stored outbox of one application.

use std::{
    borrow::Cow,
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use sqlx::Pool;

#[cfg(feature = "testing")]
use crate::store::NewRecord;
use crate::{
    config::{Config, Retention},
    operations::{Operations, health::Liveness},
    outbox::{
        Result,
        clock::{Clock, SystemClock},
        error::While as _,
    },
    record::limits::Limits,
    registry::{Registered, Registry, RegistryBuilder},
    retry::IntoPolicy,
    runtime::{
        fetch::Fetcher,
        settle::settler::Settler,
        signals::{Signal, WakeSignals},
    },
    store::{self, Database, Due, Statements, TableNames},
    transaction::Transactions,
};

/// The stored outbox of one application. Cheap to clone.
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
    pub(crate) inner: Arc<Inner<Db>>,
}

pub(crate) struct Inner<Db: Database> {
    pub(crate) pool: Pool<Db>,
    pub(crate) names: TableNames,
    pub(crate) registry: Registry,
    pub(crate) config: Config,
    pub(crate) signals: Arc<WakeSignals>,
    /// Whether a dispatcher of this outbox runs.
    pub(crate) running: AtomicBool,
    pub(crate) liveness: Arc<Liveness>,
    /// Microseconds added to the database's clock; zero outside of tests.
    pub(crate) offset: AtomicI64,
    /// Every statement of publishing and of the dispatcher on these tables.
    pub(crate) sql: Arc<Statements<Db>>,
    pub(crate) limits: Limits,
    pub(crate) partitions: u16,
    /// `retry.pin-at-schedule`: what a record gets that is scheduled without its own `max_retries`.
    pub(crate) pinned_max_retries: Option<u32>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) transactions: Transactions<Db>,
    /// How long commands and messages are remembered.
    pub(crate) command_retention: Option<Duration>,
    pub(crate) inbox_retention: Option<Duration>,
    /// The test kit's: time is what it shows, also where the database would say.
    #[cfg(feature = "testing")]
    pub(crate) hand_clock: Option<crate::outbox::clock::ManualClock>,
}

impl<Db: Database> Inner<Db> {
    pub(crate) fn fetcher(&self) -> Fetcher<Db> {
        Fetcher::new(self.pool.clone(), Arc::clone(&self.sql))
    }

    pub(crate) fn settler(&self) -> Settler<Db> {
        Settler::new(
            self.pool.clone(),
            Arc::clone(&self.sql),
            self.keeps_completed(),
        )
    }

    pub(crate) fn keeps_completed(&self) -> bool {
        self.config.processing.retention != Retention::Delete
    }

    pub(crate) fn offset(&self) -> i64 {
        self.offset.load(Ordering::Acquire)
    }

    /// As the database is to be told.
    pub(crate) fn due(&self, due: Due) -> Due {
        #[cfg(feature = "testing")]
        if let (Some(clock), Due::In(delay)) = (&self.hand_clock, due) {
            return Due::At(crate::outbox::clock::later(clock.now(), delay));
        }
        due.shifted(self.offset())
    }

    /// Corrects the time of publishing of what was just written, where a test kit says what time
    /// it is.
    #[cfg(feature = "testing")]
    pub(crate) async fn stamp(
        &self,
        connection: &mut Db::Connection,
        records: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(clock) = &self.hand_clock else {
            return Ok(());
        };
        for new in records {
            let (id, at) = (new.record.event_id, clock.now().as_microsecond());
            Db::stamp(connection, &self.names, id, at).await?;
        }
        Ok(())
    }
}

impl<Db: Database> Outbox<Db> {
    /// Starts with every handler that is linked into this program.
    pub fn builder(pool: Pool<Db>) -> OutboxBuilder<Db> {
        #[cfg(feature = "inventory")]
        let registry = Registry::linked();
        #[cfg(not(feature = "inventory"))]
        let registry = Registry::builder();
        OutboxBuilder {
            pool,
            registry,
            config: Config::default(),
            schema: None,
            prefix: "outbox_".to_owned(),
            limits: Limits::default(),
            #[cfg(feature = "testing")]
            hand_clock: None,
            clock: Arc::new(SystemClock),
            command_retention: Some(WEEK),
            inbox_retention: Some(WEEK),
        }
    }

    /// The handlers of this process.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// What is registered: id, event, policy, its source and location of each handler.
    #[must_use]
    pub fn handlers(&self) -> crate::registry::Report {
        self.inner.registry.handlers()
    }

    /// What a person on call looks at and changes: counts, lists, replays, discards, pauses.
    #[must_use]
    pub fn operations(&self) -> Operations<'_, Db> {
        let Inner {
            pool,
            names,
            signals,
            ..
        } = &*self.inner;
        Operations::new(pool, names, self.inner.partitions, Some(signals))
    }

    /// Creates or updates the tables; does nothing if they are up to date. Safe when many
    /// processes do it at once.
    ///
    /// # Errors
    /// When the database fails, or the tables are those of a newer version of this library.
    pub async fn migrate(&self) -> Result<()> {
        let found = Db::migrate(&self.inner.pool, &self.inner.names).await?;
        tracing::info!(tables = %self.inner.names, found, "outbox tables are up to date");
        Ok(())
    }

    /// Tells the dispatcher of this process that something was committed. It finds out by itself
    /// within milliseconds of a [`publish`](Self::publish) of this or another process, and within
    /// `poll-interval` of anything else; this is for those who know better.
    pub fn wake(&self) {
        self.inner.signals.raise(Signal::Requested);
    }

    /// The statements of [`migrate`](Self::migrate), for those who run them by hand.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        store::printed(&Db::migrations(&self.inner.names))
    }
}

impl<Db: Database> Clone for Outbox<Db> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
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

/// Puts an [`Outbox`] together.
#[must_use = "a builder does nothing until `build`"]
pub struct OutboxBuilder<Db: Database> {
    pool: Pool<Db>,
    registry: RegistryBuilder,
    config: Config,
    schema: Option<String>,
    prefix: String,
    limits: Limits,
    clock: Arc<dyn Clock>,
    command_retention: Option<Duration>,
    inbox_retention: Option<Duration>,
    #[cfg(feature = "testing")]
    hand_clock: Option<crate::outbox::clock::ManualClock>,
}

impl<Db: Database> OutboxBuilder<Db> {
    /// Time is what this clock shows.
    #[cfg(feature = "testing")]
    pub(crate) fn hand_clock(mut self, clock: crate::outbox::clock::ManualClock) -> Self {
        self.clock = Arc::new(clock.clone());
        self.hand_clock = Some(clock);
        self
    }

    /// The database, for handlers that need it: `.state(pool)`.
    #[must_use]
    pub fn get_pool(&self) -> &Pool<Db> {
        &self.pool
    }

    /// What tells the outbox the time; in a test, the test's clock.
    #[must_use]
    pub fn get_clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// What tells the time from the first failure to the last, for `max_elapsed`; by default the
    /// machine's clock. Due times are the database's, whatever this shows.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// These handlers instead of the linked ones, with their state and policies.
    pub fn registry(mut self, registry: RegistryBuilder) -> Self {
        self.registry = registry;
        self
    }

    /// See [`RegistryBuilder::handler`].
    pub fn handler<H: Registered>(mut self) -> Self {
        self.registry = self.registry.handler::<H>();
        self
    }

    /// See [`RegistryBuilder::handler_for`].
    pub fn handler_for<H: Registered<E>, E>(mut self) -> Self {
        self.registry = self.registry.handler_for::<H, E>();
        self
    }

    /// See [`RegistryBuilder::state`].
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.registry = self.registry.state(value);
        self
    }

    /// See [`RegistryBuilder::retry_policy`].
    pub fn retry_policy(mut self, policy: impl IntoPolicy) -> Self {
        self.registry = self.registry.retry_policy(policy);
        self
    }

    /// See [`RegistryBuilder::named_policy`].
    pub fn named_policy(mut self, name: impl Into<String>, policy: impl IntoPolicy) -> Self {
        self.registry = self.registry.named_policy(name, policy);
        self
    }

    /// See [`RegistryBuilder::error_name`].
    pub fn error_name<E: Error + 'static>(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.registry = self.registry.error_name::<E>(name);
        self
    }

    /// No handler at all is not an error: for a process that only publishes.
    pub fn allow_empty(mut self) -> Self {
        self.registry = self.registry.allow_empty();
        self
    }

    /// Settings, among them the default policy and whether the tables are created at start.
    pub fn config(mut self, config: Config) -> Self {
        self.registry = self.registry.config(&config);
        self.config = config;
        self
    }

    /// The schema (in MySQL the database) of the tables; by default the connection's own.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// What the names of the tables start with. Default: `outbox_`.
    pub fn table_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How much one record may hold.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long the results of commands are kept: longer than anybody repeats one. The dispatcher
    /// removes older ones. `None`: for ever. Default: seven days.
    pub fn command_retention(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.command_retention = time.into();
        self
    }

    /// How long the [inbox](Outbox::inbox) remembers a message: longer than anybody sends one
    /// again. The dispatcher removes older ones. `None`: for ever. Default: seven days.
    pub fn inbox_retention(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.inbox_retention = time.into();
        self
    }

    /// Checks everything, and creates or updates the tables unless the configuration says
    /// otherwise.
    ///
    /// # Errors
    /// When a name, the configuration or a handler is wrong, or the database fails.
    pub async fn build(self) -> Result<Outbox<Db>> {
        self.config.check()?;
        let names = TableNames::new(self.schema, self.prefix)?;
        let sql = Db::statements(&names)
            .map_err(sqlx::Error::from)
            .doing("preparing the statements")?;
        let clock = Arc::clone(&self.clock);
        let transactions = Transactions::with_names(self.pool.clone(), names.clone(), clock);
        let outbox = Outbox {
            inner: Arc::new(Inner {
                transactions,
                command_retention: self.command_retention,
                inbox_retention: self.inbox_retention,
                clock: self.clock,
                #[cfg(feature = "testing")]
                hand_clock: self.hand_clock,
                sql: Arc::new(sql),
                names,
                registry: self
                    .registry
                    .logs_keys(self.config.observability.log_keys)
                    .on_database::<Db>()
                    .build()?,
                pool: self.pool,
                limits: self.limits,
                partitions: PARTITIONS,
                pinned_max_retries: self.config.retry.pinned_max_retries(),
                signals: Arc::default(),
                running: AtomicBool::default(),
                liveness: Arc::new(Liveness::new()),
                offset: AtomicI64::new(0),
                config: self.config,
            }),
        };
        if outbox.inner.config.schema_initialization.enabled {
            outbox.migrate().await?;
        }
        Ok(outbox)
    }
}

/// How long commands and messages are remembered unless something else is said.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// How many parts the keys are divided into. Stored with each record: not to be changed under
/// stored ones.
pub(crate) const PARTITIONS: u16 = 64;

impl<Db: Database> fmt::Debug for OutboxBuilder<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxBuilder")
            .field("database", &Db::NAME)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
