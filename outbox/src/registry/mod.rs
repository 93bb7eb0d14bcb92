//! Which handlers there are, and which of them want an event.
//!
//! [`registration`] is what the attribute leaves behind, [`builder`] turns it into a [`Registry`]
//! or one [`RegistryError`], [`policies`] gives each handler its policy, [`report`] says what came out.

mod builder;
pub(crate) mod nearest;
mod policies;
mod problem;
pub(crate) mod registration;
mod report;
pub(crate) mod route;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

pub use builder::RegistryBuilder;
pub use problem::{Problem, RegistryError};
#[cfg(feature = "inventory")]
pub(crate) use registration::linked_error_types;
pub(crate) use registration::{
    AttributePolicy, EventMatch, Instances, Invocation, Registration, TypedEvent,
};
pub use registration::{Location, PermanentFailure, Registered};
pub use report::{HandlerReport, Report};

use crate::handler::Requirements;
use crate::{
    handler::States,
    registry::nearest::nearest,
    retry::{NoHandler, PolicySource, RetryPolicy},
    telemetry::trace::AttemptLog,
};

/// The handlers of this process, checked and with their policies resolved.
///
/// ```
/// use outbox::{outbox_handler, OutboxEvent, Registry};
///
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated {}
/// #[outbox_handler(id = "send-receipt")]
/// async fn send_receipt(event: OrderCreated) {}
///
/// let registry = Registry::builder().handler::<send_receipt>().build()?;
/// println!("{}", registry.handlers());
/// assert_eq!(registry.route("order.created").count(), 1);
/// # Ok::<(), outbox::registry::RegistryError>(())
/// ```
#[derive(Debug)]
pub struct Registry {
    /// Sorted by id: the order in which they were linked means nothing.
    handlers: Vec<HandlerEntry>,
    /// Ids and aliases, to places in `handlers`.
    by_id: HashMap<&'static str, usize>,
    states: Arc<States>,
}

/// A handler as it will run: what it is, and the policy that was resolved for it.
pub struct HandlerEntry {
    pub(crate) registration: &'static Registration,
    pub(crate) policy: Arc<dyn RetryPolicy>,
    source: PolicySource,
    shadows: Vec<PolicySource>,
    /// What is logged of its attempts.
    pub(crate) log: AttemptLog,
    pub(crate) transactions: Transactions,
}

/// Which functions of a handler are given the transaction that completes the record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transactions {
    pub(crate) handler: bool,
    pub(crate) fallback: bool,
}

impl Transactions {
    fn of(registration: &Registration) -> Self {
        let takes_one = |requires: fn(&mut Requirements)| {
            let mut requirements = Requirements::default();
            requires(&mut requirements);
            requirements.transaction.is_some()
        };
        let fallback = registration.fallback;
        Self {
            handler: takes_one(registration.requires),
            fallback: fallback.is_some_and(|fallback| takes_one(fallback.requires)),
        }
    }

    pub(crate) fn any(self) -> bool {
        self.handler || self.fallback
    }
}

impl Registry {
    /// Starts without any handler; each is named with `.handler::<H>()`.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// Starts with every handler that is linked into this program. A crate that is named nowhere
    /// in the source is not linked: `use my_handlers as _;` names it.
    ///
    /// Every handler of the *program*: tests of one binary share them, and so do all doc tests of
    /// a crate. There, name handlers with [`builder`](Self::builder).
    #[cfg(feature = "inventory")]
    pub fn linked() -> RegistryBuilder {
        registration::linked().fold(Self::builder(), RegistryBuilder::register)
    }

    /// What is registered: id, event, policy, its source and location of each handler.
    #[must_use]
    pub fn handlers(&self) -> Report {
        Report::of(self.handlers.iter())
    }

    /// The handlers that want events of this name, by id.
    pub fn route(&self, event: &str) -> impl Iterator<Item = &HandlerEntry> {
        self.handlers
            .iter()
            .filter(move |entry| entry.registration.event.accepts(event))
    }

    /// The handler with this id or alias.
    #[must_use]
    pub fn handler(&self, id: &str) -> Option<&HandlerEntry> {
        self.handlers.get(*self.by_id.get(id)?)
    }

    /// Checks that each of these events is handled here. For a test, or for a process that must
    /// not start half-linked.
    ///
    /// # Errors
    /// When some are not, each named with what to do.
    pub fn require<'e>(
        &self,
        events: impl IntoIterator<Item = &'e str>,
    ) -> Result<(), RegistryError> {
        let problems = events
            .into_iter()
            .filter(|event| self.route(event).next().is_none())
            .map(|event| Problem::NoHandler(self.no_handler(event)))
            .collect();
        RegistryError::check(problems)
    }

    /// Why nothing takes this event.
    pub(crate) fn no_handler(&self, event: &str) -> NoHandler {
        let names = self
            .handlers
            .iter()
            .filter_map(|entry| match entry.registration.event {
                EventMatch::Typed(typed) => Some(typed.name),
                EventMatch::Patterns(_) => None,
            });
        NoHandler {
            event: event.to_owned(),
            handler: None,
            nearest: nearest(event, names).map(ToOwned::to_owned),
        }
    }

    /// All handlers, by id. Their places stay as they are.
    pub(crate) fn entries(&self) -> &[HandlerEntry] {
        &self.handlers
    }

    /// Old ids, each with the present one.
    pub(crate) fn renames(&self) -> Vec<(&'static str, &'static str)> {
        let of = |entry: &HandlerEntry| {
            let id = entry.id();
            let aliases = entry.registration.aliases.iter();
            aliases.map(move |old| (*old, id)).collect::<Vec<_>>()
        };
        self.handlers.iter().flat_map(of).collect()
    }

    pub(crate) fn states(&self) -> &Arc<States> {
        &self.states
    }
}

impl HandlerEntry {
    /// The stored id.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.registration.id
    }

    /// The policy that was resolved for it.
    #[must_use]
    pub fn policy(&self) -> &dyn RetryPolicy {
        &*self.policy
    }

    /// Where the policy came from.
    #[must_use]
    pub fn policy_source(&self) -> PolicySource {
        self.source
    }

    /// How long one invocation may take.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.registration.timeout
    }

    /// How many invocations may run at once in this process.
    #[must_use]
    pub fn concurrency(&self) -> Option<u32> {
        self.registration.concurrency
    }

    /// What a failure for good does to the lane.
    #[must_use]
    pub fn on_permanent_failure(&self) -> PermanentFailure {
        self.registration.on_permanent_failure
    }
}

impl fmt::Debug for HandlerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerEntry")
            .field("id", &self.registration.id)
            .field("policy", &self.policy.describe())
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
