//! [`OutboxBuilder`]: builds an [`Outbox`].

use std::{
    borrow::Cow,
    error::Error,
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use sqlx::Pool;
use tokio::sync::OnceCell;

use super::{
    DbContext as _, Operation, Outbox, Result, Shared, clock, clock::Clock, time::DatabaseTime,
};
use crate::{
    config::Config,
    operations::health::Liveness,
    record::limits::Limits,
    registry::{
        FailedDelivery, Registered, Registry, RegistryBuilder,
        setting::{Setting, set_once},
    },
    retry::IntoPolicy,
    store::{Database, TableNames},
    transaction::Transactions,
};

/// The default retention of commands and messages: seven days.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Builds an [`Outbox`].
#[must_use = "a builder does nothing until `build`"]
pub struct OutboxBuilder<Db: Database> {
    pool: Pool<Db>,
    /// The handlers, state and policies that calls of this builder added.
    own: RegistryBuilder,
    /// The handlers of [`registry`](Self::registry). Without it: the linked ones.
    registry: Option<Setting<RegistryBuilder>>,
    config: Option<Config>,
    schema: Option<String>,
    prefix: String,
    limits: Limits,
    clock: Arc<dyn Clock>,
    command_retention: Option<Duration>,
    inbox_retention: Option<Duration>,
    time: DatabaseTime,
    /// Without a registry, the linked handlers are used.
    uses_linked: bool,
}

impl<Db: Database> OutboxBuilder<Db> {
    pub(super) fn new(pool: Pool<Db>) -> Self {
        Self {
            pool,
            own: Registry::builder(),
            registry: None,
            config: None,
            schema: None,
            prefix: "outbox_".to_owned(),
            limits: Limits::default(),
            time: DatabaseTime::default(),
            clock: Arc::new(clock::SystemClock),
            command_retention: Some(WEEK),
            inbox_retention: Some(WEEK),
            uses_linked: true,
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

    /// Uses these handlers, with their state and policies, instead of the linked ones. Other calls of
    /// this builder add to them, whichever comes first.
    #[track_caller]
    pub fn registry(mut self, registry: RegistryBuilder) -> Self {
        let setting = Setting::new(registry);
        let problems = self.own.problems();
        set_once(&mut self.registry, setting, ".registry(..)", problems);
        self
    }

    /// Ignores linked handlers that the program does not name.
    #[cfg(feature = "testing")]
    pub(crate) fn without_linked(mut self) -> Self {
        self.uses_linked = false;
        self
    }

    fn with_own(mut self, change: impl FnOnce(RegistryBuilder) -> RegistryBuilder) -> Self {
        self.own = change(self.own);
        self
    }

    /// See [`RegistryBuilder::handler`].
    pub fn handler<H: Registered>(self) -> Self {
        self.with_own(RegistryBuilder::handler::<H>)
    }

    /// See [`RegistryBuilder::handler_for`].
    pub fn handler_for<H: Registered<E>, E>(self) -> Self {
        self.with_own(RegistryBuilder::handler_for::<H, E>)
    }

    /// See [`RegistryBuilder::state`].
    #[track_caller]
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        let own = self.own.state(value);
        Self { own, ..self }
    }

    /// See [`RegistryBuilder::retry_policy`].
    #[track_caller]
    pub fn retry_policy(self, policy: impl IntoPolicy) -> Self {
        let own = self.own.retry_policy(policy);
        Self { own, ..self }
    }

    /// See [`RegistryBuilder::named_policy`].
    #[track_caller]
    pub fn named_policy(self, name: impl Into<String>, policy: impl IntoPolicy) -> Self {
        let own = self.own.named_policy(name, policy);
        Self { own, ..self }
    }

    /// See [`RegistryBuilder::error_name`].
    pub fn error_name<E: Error + 'static>(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.with_own(|registry| registry.error_name::<E>(name))
    }

    /// Calls a function for each delivery that failed permanently, whatever its handler, in addition to the
    /// handler's own `fallback`.
    ///
    /// ```
    /// # use outbox::{Database, Outbox, OutboxBuilder, registry::FailedDelivery};
    /// # fn build<Db: Database>(builder: OutboxBuilder<Db>) -> OutboxBuilder<Db> {
    /// builder.on_failed(|failed: FailedDelivery| async move {
    ///     let (handler, event_id) = (failed.handler(), failed.metadata().event_id());
    ///     println!("{handler} failed at {event_id}: {} ({})", failed.error(), failed.because());
    /// })
    /// # }
    /// ```
    ///
    /// - A worker calls it when the failure is final: after the fallback failed, or where there is none. It is
    ///   not called after a fallback that succeeded, and not after an attempt that will be retried.
    /// - The failure is written **after** the function has ended. A process that dies in between, or loses the
    ///   partition, has written nothing: the handler runs again, and after another permanent failure the
    ///   function is called again. So it is called at least once for each failure that is written. Use
    ///   `metadata().event_id()` together with `handler()` to recognise a second call.
    /// - After a replay by a person, another permanent failure leads to another call.
    /// - It may take 10 s. After that it is cancelled at its current `.await`. A panic is caught. Both are
    ///   logged and counted by `outbox_failure_hooks_total`, and the failure is written all the same.
    /// - While it runs, it holds one slot of the handler's `concurrency`. Records of other keys and of other
    ///   handlers continue.
    ///
    /// A second call of this method is an error at [`build`](Self::build).
    #[track_caller]
    pub fn on_failed<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(FailedDelivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let own = self.own.on_failed(hook);
        Self { own, ..self }
    }

    /// Accepts that there is no handler: for a process that only publishes.
    pub fn allow_empty(self) -> Self {
        self.with_own(RegistryBuilder::allow_empty)
    }

    /// The settings, among them the default retry policy and whether `build` migrates the tables.
    #[track_caller]
    pub fn config(mut self, config: Config) -> Self {
        self.own = self.own.config(&config);
        self.config = Some(config);
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
        let config = self.config.unwrap_or_default();
        config.check()?;
        let names = TableNames::new(self.schema, self.prefix)?;
        let sql = Db::statements(&names).map_err(sqlx::Error::from);
        let sql = sql.during(Operation::Migrate)?;
        let (pool, clock) = (self.pool.clone(), Arc::clone(&self.clock));
        let transactions = Transactions::with_names(pool, names.clone(), clock);
        let handlers = match self.registry {
            Some(registry) => registry.into_value(),
            None if self.uses_linked => linked(),
            None => Registry::builder(),
        };
        let registry = handlers.merge(self.own).on_database::<Db>().build()?;
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
            partitions: OnceCell::new(),
            pinned_max_retries: config.retry.pinned_max_retries(),
            signals: Arc::default(),
            is_running: AtomicBool::default(),
            liveness: Arc::new(Liveness::new()),
            config,
        });
        let outbox = Outbox { inner };
        if outbox.inner.config.schema_initialization.enabled {
            outbox.migrate().await?;
            outbox.inner.read_partitions().await?;
        }
        Ok(outbox)
    }
}

/// The handlers that are linked into this program.
fn linked() -> RegistryBuilder {
    #[cfg(feature = "inventory")]
    let registry = Registry::linked();
    #[cfg(not(feature = "inventory"))]
    let registry = Registry::builder();
    registry
}

impl<Db: Database> fmt::Debug for OutboxBuilder<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxBuilder")
            .field("database", &Db::NAME)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}
