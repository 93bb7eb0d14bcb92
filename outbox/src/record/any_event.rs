//! [`AnyEvent`]: an event whose type the handler does not fix.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::record::OutboxEvent;
use crate::{handler::HandlerError, record::Record};

/// An event of any name, with its payload still in JSON.
///
/// ```
/// use outbox::{outbox_handler, AnyEvent};
///
/// #[outbox_handler(events = "order.*")]
/// async fn audit(event: AnyEvent) -> Result<(), serde_json::Error> {
///     let order: serde_json::Value = event.json()?;
///     println!("{} of version {}: {order}", event.name(), event.version());
///     Ok(())
/// }
/// ```
///
/// Without `events` the handler receives every event.
#[derive(Debug, Clone)]
pub struct AnyEvent {
    record: Arc<Record>,
}

impl AnyEvent {
    pub(crate) fn new(record: Arc<Record>) -> Self {
        Self { record }
    }

    /// The stored name of the event.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.record.event
    }

    /// The stored version of the payload's shape.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.record.version
    }

    /// The payload as it is stored.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.record.payload
    }

    /// The payload as JSON text, unparsed.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn raw_json(&self) -> Result<&RawValue, serde_json::Error> {
        serde_json::from_str(&self.record.payload)
    }

    /// The payload as any type that can be read from JSON.
    ///
    /// # Errors
    /// When it does not have the shape of a `T`.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.record.payload)
    }

    /// Whether this is an `E`, by name or alias.
    #[must_use]
    pub fn is<E: OutboxEvent>(&self) -> bool {
        self.name() == E::NAME || E::ALIASES.contains(&self.name())
    }

    /// The event as an `E`, checked by its `validate`. Does not look at the name: see [`is`](Self::is).
    ///
    /// # Errors
    /// When the payload does not have the shape of an `E`, or is not a valid one: a failure that
    /// is never retried when the handler returns it.
    pub fn parse<E: OutboxEvent>(&self) -> Result<E, HandlerError> {
        self.record.decode()
    }
}
