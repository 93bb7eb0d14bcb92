//! [`Registry`]: the handlers of this process.

use std::sync::Arc;

use super::{
    EventMatch, HandlerEntry, HandlerIx, NoHandler, PerHandler, Problem, RegistryBuilder,
    RegistryError, Report, failure_hook::FailureHook, nearest::nearest,
};
use crate::handler::States;

/// The handlers of this process. They are checked, and each has its retry policy.
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
    /// Sorted by id, because the linker gives no order that means anything.
    pub(super) handlers: Vec<HandlerEntry>,
    pub(super) states: Arc<States>,
    pub(super) failure_hook: Option<FailureHook>,
}

impl Registry {
    /// Starts without handlers. The program names each of them with `.handler::<H>()`.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// Starts with every handler that is linked into this program. Rust links a crate only if the
    /// source names it: write `use my_handlers as _;` for a crate of handlers.
    ///
    /// All tests of one test binary share the linked handlers, and so do all doc tests of a crate.
    /// A test should name its handlers with [`builder`](Self::builder).
    #[cfg(feature = "inventory")]
    pub fn linked() -> RegistryBuilder {
        super::linked::linked().fold(Self::builder(), RegistryBuilder::register)
    }

    /// Describes each handler: id, event, policy, where the policy was set, source location.
    #[must_use]
    pub fn handlers(&self) -> Report {
        Report::of(&self.handlers)
    }

    /// The handlers that take events of this name, sorted by id.
    pub fn route(&self, event: &str) -> impl Iterator<Item = &HandlerEntry> {
        self.handlers
            .iter()
            .filter(move |entry| entry.registration.event.accepts(event))
    }

    /// The handler with this id or alias.
    #[must_use]
    pub fn handler(&self, id: &str) -> Option<&HandlerEntry> {
        let mut handlers = self.handlers.iter();
        handlers.find(|entry| entry.registration.is_called(id))
    }

    /// Checks that each of these events has a handler. Call it in a test, or at the start of a
    /// process that must not run while a crate of handlers is not linked.
    ///
    /// # Errors
    /// Lists every event without a handler, with a way to fix it.
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

    /// The error for an event without a handler. It suggests the handled event of the most
    /// similar name.
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

    /// All handlers, sorted by id. The order never changes.
    pub(crate) fn entries(&self) -> &[HandlerEntry] {
        &self.handlers
    }

    pub(crate) fn entry(&self, handler: HandlerIx) -> &HandlerEntry {
        &self.handlers[handler.index()]
    }

    /// One value for each handler.
    pub(crate) fn per_handler<'a, T>(
        &'a self,
        of: impl FnMut(&'a HandlerEntry) -> T,
    ) -> PerHandler<T> {
        PerHandler::new(self.handlers.iter().map(of))
    }

    /// The program's function for deliveries that failed permanently.
    pub(crate) fn failure_hook(&self) -> Option<&FailureHook> {
        self.failure_hook.as_ref()
    }

    pub(crate) fn states(&self) -> &Arc<States> {
        &self.states
    }
}
