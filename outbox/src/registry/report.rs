//! [`Report`]: a description of the registered handlers, for people and for tools.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::{EventMatch, HandlerEntry, Location, PermanentFailure};
use crate::retry::{PolicyPart, PolicySource};

/// Describes every handler: its event, its policy, and where the policy was set. `Display` writes a
/// text for people, `Serialize` writes data for tools.
///
/// ```
/// # use outbox::{OutboxEvent, Registry, outbox_handler, retry::PolicySource};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated {}
/// # #[outbox_handler(id = "report")]
/// # async fn report(event: OrderCreated) {}
/// let registry = Registry::builder().handler::<report>().build()?;
/// let handlers = registry.handlers();
/// assert_eq!(handlers.get("report").map(|handler| handler.source), Some(PolicySource::Default));
/// println!("{handlers}");
/// println!("{}", serde_json::to_string(&handlers)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Report {
    handlers: Vec<HandlerReport>,
}

/// Describes one handler.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct HandlerReport {
    /// The id under which the database knows the handler.
    pub id: &'static str,
    /// Older ids of the handler.
    pub aliases: &'static [&'static str],
    /// The name of the event, or the patterns of event names.
    pub event: String,
    /// The Rust type of the event. `None` for patterns.
    pub event_type: Option<&'static str>,
    /// A short description of the retry policy.
    pub policy: String,
    /// Where the policy was set.
    pub source: PolicySource,
    /// The places of the parts that `source` does not set.
    pub inherited: BTreeMap<PolicyPart, PolicySource>,
    /// Weaker places that set a policy too, of which nothing is used.
    pub shadows: Vec<PolicySource>,
    /// The time limit of one invocation, in milliseconds.
    pub timeout_ms: Option<u128>,
    /// How many invocations may run at the same time in this process.
    pub concurrency: Option<u32>,
    /// What a permanent failure does to later records of the lane.
    pub on_permanent_failure: PermanentFailure,
    /// Whether the handler has a fallback.
    pub fallback: bool,
    /// The source location of the handler.
    pub location: Location,
}

impl Report {
    pub(super) fn of(handlers: &[HandlerEntry]) -> Self {
        let handlers = handlers.iter().map(HandlerReport::of).collect();
        Self { handlers }
    }

    /// The handlers, sorted by id.
    pub fn iter(&self) -> std::slice::Iter<'_, HandlerReport> {
        self.handlers.iter()
    }

    /// The handler with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&HandlerReport> {
        self.iter().find(|handler| handler.id == id)
    }
}

impl<'a> IntoIterator for &'a Report {
    type Item = &'a HandlerReport;
    type IntoIter = std::slice::Iter<'a, HandlerReport>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl HandlerReport {
    /// Where a part of the policy was set.
    #[must_use]
    pub fn source_of(&self, part: PolicyPart) -> PolicySource {
        self.inherited.get(&part).copied().unwrap_or(self.source)
    }

    fn of(entry: &HandlerEntry) -> Self {
        let registration = entry.registration;
        Self {
            id: registration.id,
            aliases: registration.aliases,
            event: registration.event.to_string(),
            event_type: match registration.event {
                EventMatch::Typed(typed) => Some((typed.type_name)()),
                EventMatch::Patterns(_) => None,
            },
            policy: entry.policy().describe(),
            source: entry.resolved.source,
            inherited: entry.resolved.inherited.clone(),
            shadows: entry.resolved.shadows.clone(),
            timeout_ms: registration.timeout.map(|timeout| timeout.as_millis()),
            concurrency: registration.concurrency,
            on_permanent_failure: registration.on_permanent_failure,
            fallback: registration.fallback.is_some(),
            location: registration.location,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.handlers.len();
        let s = if count == 1 { "" } else { "s" };
        write!(f, "{count} handler{s}")?;
        self.iter().try_for_each(|handler| write!(f, "\n{handler}"))
    }
}

impl fmt::Display for HandlerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, event, policy, source) = (self.id, &self.event, &self.policy, self.source);
        write!(
            f,
            "{id}\n  event   {event}\n  policy  {policy}\n  source  {source}"
        )?;
        if let Some(weaker) = self.inherited.values().next() {
            let parts: Vec<String> = self.inherited.keys().map(ToString::to_string).collect();
            write!(f, "; {} from {weaker}", parts.join(", "))?;
        }
        if !self.shadows.is_empty() {
            let shadowed: Vec<String> = self.shadows.iter().map(ToString::to_string).collect();
            write!(f, " (shadows {})", shadowed.join(", "))?;
        }
        write!(f, "\n  at      {}", self.location)
    }
}
