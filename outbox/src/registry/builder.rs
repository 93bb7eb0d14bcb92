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
    HandlerEntry, Problem, Registered, Registration, Registry, RegistryError,
    handler_entry::Transactions,
    policies::{Policies, Policy},
};
use crate::{
    config::{Config, RetryConfig, error_names::ErrorNames},
    handler::{Requirements, States},
    record::LONGEST_NAME,
    retry::{IntoPolicy, PolicyError, filter::ErrorType},
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
    global: Option<Result<Policy, PolicyError>>,
    named: BTreeMap<String, Result<Policy, PolicyError>>,
    error_types: Vec<ErrorType>,
    retry: RetryConfig,
    allow_empty: bool,
    log_keys: bool,
    /// The outbox's database type and its name. `None` without an outbox.
    database: Option<(TypeId, &'static str)>,
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
    /// `T`. A second value of the same type replaces the first.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Sets the policy of every handler that has none of its own. It wins over the configuration.
    pub fn retry_policy(mut self, policy: impl IntoPolicy) -> Self {
        self.global = Some(policy.into_policy());
        self
    }

    /// Adds a policy for `#[retryable(policy = "name")]`. It wins over a policy of the same name in the
    /// configuration.
    pub fn named_policy(mut self, name: impl Into<String>, policy: impl IntoPolicy) -> Self {
        self.named.insert(name.into(), policy.into_policy());
        self
    }

    /// Gives an error type a name, so that the configuration can include or exclude it.
    pub fn error_name<E: Error + 'static>(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.error_types.push(ErrorType::named::<E>(name));
        self
    }

    /// Takes from a configuration the default policy, the named policies, and whether log lines
    /// contain keys.
    pub fn config(mut self, config: &Config) -> Self {
        self.retry = config.retry.clone();
        self.logs_keys(config.observability.log_keys)
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
        let mut problems = Vec::new();
        if self.registrations.is_empty() && !self.allow_empty {
            problems.push(Problem::Empty);
        }
        let mut registrations = self.registrations;
        registrations.sort_by_key(|registration| (registration.id, registration.location));
        check_ids(&registrations, &mut problems);

        let names = error_names(self.error_types, &mut problems);
        let policies = Policies::check(self.global, self.named, &self.retry, &names, &mut problems);
        let mut handlers = Vec::with_capacity(registrations.len());
        for registration in registrations {
            let transactions =
                check_arguments(registration, &self.states, self.database, &mut problems);
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

        let states = Arc::new(self.states);
        let registry = Registry { handlers, states };
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

/// Checks ids and aliases, which share one namespace.
fn check_ids(registrations: &[&'static Registration], problems: &mut Vec<Problem>) {
    let mut known = HashMap::new();
    for registration in registrations {
        for id in [registration.id].iter().chain(registration.aliases) {
            let location = registration.location;
            if id.len() > LONGEST_NAME {
                problems.push(Problem::LongId { id, location });
            }
            if let Some(first) = known.insert(*id, location) {
                problems.push(Problem::DuplicateId {
                    id,
                    first,
                    second: location,
                });
            }
        }
    }
}

/// Checks what a handler and its fallback take: every state is there, and a `Tx` is of the outbox's
/// database. Without an outbox there is no database to compare with, and an attempt of such a handler
/// fails.
fn check_arguments(
    registration: &Registration,
    states: &States,
    database: Option<(TypeId, &'static str)>,
    problems: &mut Vec<Problem>,
) -> Transactions {
    let (handler, location) = (registration.id, registration.location);
    let required_by = |requires: fn(&mut Requirements)| {
        let mut requirements = Requirements::default();
        requires(&mut requirements);
        requirements
    };
    let by_handler = required_by(registration.requires);
    let fallback = registration.fallback;
    let by_fallback = fallback.map_or_else(Requirements::default, |f| required_by(f.requires));
    if by_handler.failure {
        problems.push(Problem::FailureArgument { handler, location });
    }
    let mut missing = [by_handler.states, by_fallback.states].concat();
    missing.retain(|state| !states.has(state.ty));
    missing.sort_by_key(|state| state.name);
    missing.dedup();
    problems.extend(missing.iter().map(|state| Problem::MissingState {
        handler,
        ty: state.name,
        location,
    }));
    let taken = [by_handler.transaction, by_fallback.transaction];
    if let Some((ty, outbox)) = database
        && let Some(other) = taken.iter().flatten().find(|taken| taken.ty != ty)
    {
        problems.push(Problem::OtherDatabase {
            handler,
            taken: other.name,
            outbox,
            location,
        });
    }
    let [handler, fallback] = taken.map(|transaction| transaction.is_some());
    Transactions { handler, fallback }
}

/// The names of all error types: built-in, linked, and given to the builder.
fn error_names(own: Vec<ErrorType>, problems: &mut Vec<Problem>) -> ErrorNames {
    let mut names = ErrorNames::linked().unwrap_or_else(|duplicate| {
        problems.push(duplicate.into());
        ErrorNames::built_in().clone()
    });
    for ty in own {
        if let Err(duplicate) = names.insert(ty.name.clone(), ty) {
            problems.push(duplicate.into());
        }
    }
    names
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
