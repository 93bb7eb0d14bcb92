//! [`RegistryBuilder`]: collects handlers, state and policies, and checks all of them at once.

use std::any::{TypeId, type_name};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    error::Error,
    fmt,
    sync::Arc,
};

use super::{
    HandlerEntry, Problem, Registered, Registration, Registry, RegistryError, check,
    failure_hook::{FailedDelivery, FailureHook},
    policies::Policies,
    setting::{Setting, set_once},
};
use crate::{
    config::{Config, RetryConfig},
    handler::States,
    retry::{IntoPolicy, UnbuiltPolicy, filter::ErrorType},
    telemetry::trace::AttemptLog,
};

/// Builds a [`Registry`]. [`build`](Self::build) checks everything and reports all problems in one
/// error.
///
/// ```
/// use std::time::Duration;
/// use outbox::{Registry, Retry};
///
/// let registry = Registry::builder()
///     .retry_policy(Retry::builder().max_retries(5))
///     .named_policy("gentle", Retry::builder().fixed(Duration::from_secs(300)))
///     .allow_empty() // a process that only publishes
///     .build()?;
/// # Ok::<(), outbox::registry::RegistryError>(())
/// ```
#[derive(Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct RegistryBuilder {
    registrations: Vec<&'static Registration>,
    states: States,
    /// The calls of `state`, by type.
    given: HashMap<TypeId, Setting<&'static str>>,
    global: Option<Setting<UnbuiltPolicy>>,
    named: BTreeMap<String, Setting<UnbuiltPolicy>>,
    error_types: Vec<ErrorType>,
    retry: Option<Setting<RetryConfig>>,
    on_failed: Option<Setting<FailureHook>>,
    allow_empty: bool,
    log_keys: bool,
    /// The outbox's database type and its name. `None` without an outbox.
    database: Option<(TypeId, &'static str)>,
    /// The problems that the calls so far have found.
    problems: Vec<Problem>,
}

impl RegistryBuilder {
    /// Adds a marked function, or every marked method of a type.
    ///
    /// ```
    /// # use outbox::{outbox_handler, OutboxEvent, Registry};
    /// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
    /// # #[outbox_event(name = "order.created")]
    /// # struct OrderCreated {}
    /// #[outbox_handler]
    /// async fn send_receipt(event: OrderCreated) {}
    ///
    /// Registry::builder().handler::<send_receipt>().build()?;
    /// # Ok::<(), outbox::registry::RegistryError>(())
    /// ```
    ///
    /// `send_receipt` is a type argument here: the attribute generates a type with the function's
    /// name. In an expression, the name would be the function, which does not know its attributes.
    pub fn handler<H: Registered>(self) -> Self {
        H::REGISTRATIONS.iter().fold(self, Self::register)
    }

    /// Adds `#[outbox_handler] impl Handler<E> for H`.
    pub fn handler_for<H: Registered<E>, E>(self) -> Self {
        H::REGISTRATIONS.iter().fold(self, Self::register)
    }

    /// Adds a handler. A handler that is linked and also named is added once.
    pub(super) fn register(mut self, registration: &'static Registration) -> Self {
        let same = |known: &&Registration| {
            known.id == registration.id && known.location == registration.location
        };
        if !self.registrations.iter().any(same) {
            self.registrations.push(registration);
        }
        self
    }

    /// Gives a value to all handlers that take a `State<T>`, and to all handlers whose `&self` is a
    /// `T`. [`build`](Self::build) refuses a second value of the same type.
    #[track_caller]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        let (ty, setting) = (TypeId::of::<T>(), Setting::new(type_name::<T>()));
        if self.set_state(ty, setting) {
            self.states.insert(value);
        }
        self
    }

    /// Sets the policy of every handler that has none of its own. It wins over the configuration. A
    /// later call replaces an earlier one.
    #[track_caller]
    pub fn retry_policy(mut self, policy: impl IntoPolicy) -> Self {
        self.global = Some(Setting::new(policy.unbuilt()));
        self
    }

    /// Adds a policy for `#[retryable(policy = "name")]`. It wins over a policy of the same name in the
    /// configuration.
    #[track_caller]
    pub fn named_policy(mut self, name: impl Into<String>, policy: impl IntoPolicy) -> Self {
        let setting = Setting::new(policy.unbuilt());
        self.named.insert(name.into(), setting);
        self
    }

    /// Gives an error type a name, so that the configuration can include or exclude it.
    pub fn error_name<E: Error + 'static>(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.error_types.push(ErrorType::named::<E>(name));
        self
    }

    /// Calls a function for each delivery that failed permanently; see
    /// [`OutboxBuilder::on_failed`](crate::OutboxBuilder::on_failed).
    #[track_caller]
    pub fn on_failed<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(FailedDelivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.set_on_failed(Setting::new(FailureHook::new(hook)));
        self
    }

    fn set_on_failed(&mut self, hook: Setting<FailureHook>) {
        let (slot, problems) = (&mut self.on_failed, &mut self.problems);
        set_once(slot, hook, ".on_failed(..)", problems);
    }

    /// Takes from a configuration the default policy, the named policies, and whether log lines
    /// contain keys.
    #[track_caller]
    pub fn config(mut self, config: &Config) -> Self {
        self.retry = Some(Setting::new(config.retry.clone()));
        self.logs_keys(config.observability.log_keys)
    }

    /// Adds everything that another builder was given. A setting of both is a problem: the order of the
    /// calls does not decide.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self = other.registrations.into_iter().fold(self, Self::register);
        for (ty, setting) in other.given {
            self.set_state(ty, setting);
        }
        self.states.merge(other.states);
        for (name, setting) in other.named {
            let call = format!(".named_policy(\"{name}\", ..)");
            let mut slot = self.named.remove(&name);
            set_once(&mut slot, setting, &call, &mut self.problems);
            self.named.extend(slot.map(|setting| (name, setting)));
        }
        self.problems.extend(other.problems);
        if let Some(setting) = other.global {
            let call = ".retry_policy(..)";
            set_once(&mut self.global, setting, call, &mut self.problems);
        }
        let is_same =
            |one: &Setting<RetryConfig>, other: &Setting<RetryConfig>| one.value() == other.value();
        if let Some(setting) = other.retry
            && !self
                .retry
                .as_ref()
                .is_some_and(|own| is_same(own, &setting))
        {
            set_once(&mut self.retry, setting, ".config(..)", &mut self.problems);
        }
        if let Some(hook) = other.on_failed {
            self.set_on_failed(hook);
        }
        self.error_types.extend(other.error_types);
        self.allow_empty |= other.allow_empty;
        self.log_keys |= other.log_keys;
        self.database = self.database.or(other.database);
        self
    }

    /// Whether no earlier call gave a value of this type.
    fn set_state(&mut self, ty: TypeId, setting: Setting<&'static str>) -> bool {
        let call = format!(".state({})", setting.value());
        let mut slot = self.given.remove(&ty);
        let is_first = slot.is_none();
        set_once(&mut slot, setting, &call, &mut self.problems);
        self.given.extend(slot.map(|setting| (ty, setting)));
        is_first
    }

    pub(crate) fn problems(&mut self) -> &mut Vec<Problem> {
        &mut self.problems
    }

    /// Allows keys in log lines if `may` is true. It never takes the permission back.
    pub(crate) fn logs_keys(mut self, may: bool) -> Self {
        self.log_keys |= may;
        self
    }

    /// Allows a registry without handlers, for a process that only publishes.
    pub fn allow_empty(mut self) -> Self {
        self.allow_empty = true;
        self
    }

    /// Sets the outbox's database. A handler's `Tx` has to be of the same database.
    pub(crate) fn on_database<Db: 'static>(mut self) -> Self {
        self.database = Some((TypeId::of::<Db>(), type_name::<Db>()));
        self
    }

    /// Checks everything and chooses the policy of each handler.
    ///
    /// # Errors
    /// There is no handler, an id belongs to two handlers, a state is missing, or a policy does not
    /// exist or cannot be built. The error lists every [`Problem`].
    pub fn build(self) -> Result<Registry, RegistryError> {
        let mut problems = self.problems;
        if self.registrations.is_empty() && !self.allow_empty {
            problems.push(Problem::Empty);
        }
        let mut registrations = self.registrations;
        registrations.sort_by_key(|registration| (registration.id, registration.location));
        check::ids(&registrations, &mut problems);

        let names = check::error_names(self.error_types, &mut problems);
        let named = self.named.into_iter();
        let named = named.map(|(name, setting)| (name, setting.into_value().build(&names)));
        let retry = self.retry.map(Setting::into_value).unwrap_or_default();
        let policies = Policies::check(
            self.global
                .map(|setting| setting.into_value().build(&names)),
            named.collect(),
            &retry,
            &names,
            &mut problems,
        );
        let mut handlers = Vec::with_capacity(registrations.len());
        for registration in registrations {
            let transactions =
                check::arguments(registration, &self.states, self.database, &mut problems);
            if let Some(resolved) = policies.resolve(registration, &self.states, &mut problems) {
                handlers.push(HandlerEntry {
                    registration,
                    resolved,
                    log: AttemptLog::new(self.log_keys),
                    transactions,
                });
            }
        }
        RegistryError::check(problems)?;

        let registry = Registry {
            handlers,
            states: Arc::new(self.states),
            failure_hook: self.on_failed.map(Setting::into_value),
        };
        for handler in &registry.handlers() {
            tracing::debug!(
                handler = handler.id,
                event = handler.event,
                policy = handler.policy,
                policy_source = %handler.source,
                location = %handler.location,
                "handler registered"
            );
        }
        tracing::info!(handlers = registry.handlers.len(), "registry built");
        Ok(registry)
    }
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.registrations.iter().map(|r| r.id).collect();
        f.debug_struct("RegistryBuilder")
            .field("handlers", &ids)
            .field("states", &self.states)
            .finish_non_exhaustive()
    }
}
