//! [`OutboxBuilder`]: puts an [`Outbox`] together.

use std::{
    borrow::Cow,
    error::Error,
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use sqlx::Pool;

use super::{
    DbContext as _, Operation, Outbox, Result, Shared, clock, clock::Clock, time::DatabaseTime,
};
use crate::{
    config::Config,
    operations::health::Liveness,
    record::limits::Limits,
    registry::{Registered, Registry, RegistryBuilder},
    retry::IntoPolicy,
    store::{Database, TableNames},
    transaction::Transactions,
};

/// The default retention of commands and messages: seven days.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

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
    time: DatabaseTime,
}

impl<Db: Database> OutboxBuilder<Db> {
    pub(super) fn new(pool: Pool<Db>) -> Self {
        #[cfg(feature = "inventory")]
        let registry = Registry::linked();
        #[cfg(not(feature = "inventory"))]
        let registry = Registry::builder();
        Self {
            pool,
            registry,
            config: Config::default(),
            schema: None,
            prefix: "outbox_".to_owned(),
            limits: Limits::default(),
            time: DatabaseTime::default(),
            clock: Arc::new(clock::SystemClock),
            command_retention: Some(WEEK),
            inbox_retention: Some(WEEK),
        }
    }

    /// The clock of the test kit decides every time, also where the clock of the database would.
    #[cfg(feature = "testing")]
    pub(crate) fn manual_clock(mut self, clock: clock::ManualClock) -> Self {
        self.clock = Arc::new(clock.clone());
        self.time.manual = Some(clock);
        self
    }

    /// The pool, for handlers that need the database: `.state(pool)`.
    #[must_use]
    pub fn pool(&self) -> &Pool<Db> {
        &self.pool
    }

    /// The clock that [`clock`](Self::clock) has set. In a test this is the clock of the kit.
    #[must_use]
    pub fn shared_clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The clock that measures `max_elapsed`, from the first failure on. Default: the clock of the
    /// operating system. Due times follow the clock of the database instead.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Uses these handlers, with their state and policies, instead of the linked ones.
    pub fn registry(mut self, registry: RegistryBuilder) -> Self {
        self.registry = registry;
        self
    }

    fn with_registry(mut self, change: impl FnOnce(RegistryBuilder) -> RegistryBuilder) -> Self {
        self.registry = change(self.registry);
        self
    }

    /// See [`RegistryBuilder::handler`].
    pub fn handler<H: Registered>(self) -> Self {
        self.with_registry(RegistryBuilder::handler::<H>)
    }

    /// See [`RegistryBuilder::handler_for`].
    pub fn handler_for<H: Registered<E>, E>(self) -> Self {
        self.with_registry(RegistryBuilder::handler_for::<H, E>)
    }

    /// See [`RegistryBuilder::state`].
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.with_registry(|registry| registry.state(value))
    }

    /// See [`RegistryBuilder::retry_policy`].
    pub fn retry_policy(self, policy: impl IntoPolicy) -> Self {
        self.with_registry(|registry| registry.retry_policy(policy))
    }

    /// See [`RegistryBuilder::named_policy`].
    pub fn named_policy(self, name: impl Into<String>, policy: impl IntoPolicy) -> Self {
        self.with_registry(|registry| registry.named_policy(name, policy))
    }

    /// See [`RegistryBuilder::error_name`].
    pub fn error_name<E: Error + 'static>(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.with_registry(|registry| registry.error_name::<E>(name))
    }

    /// Accepts that there is no handler: for a process that only publishes.
    pub fn allow_empty(self) -> Self {
        self.with_registry(RegistryBuilder::allow_empty)
    }

    /// The settings, among them the default retry policy and whether `build` migrates the tables.
    pub fn config(mut self, config: Config) -> Self {
        self.registry = self.registry.config(&config);
        self.config = config;
        self
    }

    /// The schema of the tables (in MySQL: the database). Default: the schema of the connection.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// The beginning of the names of the tables. Default: `outbox_`.
    pub fn table_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The size limits of a record.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long the results of commands are kept. Choose a longer time than any client repeats a
    /// command. The dispatcher removes older results. `None`: forever. Default: seven days.
    pub fn command_retention(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.command_retention = time.into();
        self
    }

    /// How long the [inbox](Outbox::inbox) keeps the id of a message. Choose a longer time than any
    /// sender repeats a message. The dispatcher removes older ids. `None`: forever. Default: seven
    /// days.
    pub fn inbox_retention(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.inbox_retention = time.into();
        self
    }

    /// Checks all settings and handlers. Then creates or updates the tables, unless
    /// `schema-initialization.enabled` is false.
    ///
    /// # Errors
    /// If a name, the configuration or a handler is wrong, or if the database fails.
    pub async fn build(self) -> Result<Outbox<Db>> {
        self.config.check()?;
        let names = TableNames::new(self.schema, self.prefix)?;
        let sql = Db::statements(&names).map_err(sqlx::Error::from);
        let sql = sql.during(Operation::Migrate)?;
        let (pool, clock) = (self.pool.clone(), Arc::clone(&self.clock));
        let transactions = Transactions::with_names(pool, names.clone(), clock);
        let registry = self
            .registry
            .logs_keys(self.config.observability.log_keys)
            .on_database::<Db>()
            .build()?;
        let inner = Arc::new(Shared {
            transactions,
            command_retention: self.command_retention,
            inbox_retention: self.inbox_retention,
            clock: self.clock,
            time: self.time,
            sql: Arc::new(sql),
            names,
            registry,
            pool: self.pool,
            limits: self.limits,
            pinned_max_retries: self.config.retry.pinned_max_retries(),
            signals: Arc::default(),
            running: AtomicBool::default(),
            liveness: Arc::new(Liveness::new()),
            config: self.config,
        });
        let outbox = Outbox { inner };
        if outbox.inner.config.schema_initialization.enabled {
            outbox.migrate().await?;
        }
        Ok(outbox)
    }
}

impl<Db: Database> fmt::Debug for OutboxBuilder<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxBuilder")
            .field("database", &Db::NAME)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
