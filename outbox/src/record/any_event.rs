//! [`AnyEvent`]: an event of any type, for handlers of many events.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{OutboxEvent, Record};
use crate::handler::HandlerError;

/// An event of any name, with its payload as JSON text.
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
    pub(crate) record: Arc<Record>,
}

impl AnyEvent {
    /// The stored name of the event.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.record.event
    }

    /// The stored version of the payload.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.record.version
    }

    /// The payload as stored.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.record.payload
    }

    /// The payload as JSON, not parsed.
    ///
    /// # Errors
    /// If the payload is not JSON.
    pub fn raw_json(&self) -> Result<&RawValue, serde_json::Error> {
        serde_json::from_str(&self.record.payload)
    }

    /// The payload as a `T`.
    ///
    /// # Errors
    /// If the payload cannot be read as a `T`.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.record.payload)
    }

    /// Whether this is an `E`, by name or alias.
    #[must_use]
    pub fn is<E: OutboxEvent>(&self) -> bool {
        self.name() == E::NAME || E::ALIASES.contains(&self.name())
    }

    /// The event as an `E`, checked by its `validate`. Ignores the name: see [`is`](Self::is).
    ///
    /// # Errors
    /// If the payload cannot be read as an `E`, or if `validate` refuses it. A handler that returns
    /// this error is not retried.
    pub fn parse<E: OutboxEvent>(&self) -> Result<E, HandlerError> {
        self.record.decode()
    }
}
