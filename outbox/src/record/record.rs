//! [`Record`]: one published event as it is stored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    handler::{BoxError, FailureKind, HandlerError},
    outbox::clock::Clock,
    record::OutboxEvent,
};

/// The longest name, id or key, in bytes: what every database can index.
pub(crate) const LONGEST_NAME: usize = 255;

/// One published event as it is stored: a name, a payload, and what was said about it.
///
/// ```
/// use outbox::{OutboxEvent, clock::SystemClock, record::Record};
///
/// #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// #[outbox_event(name = "order.created", key = order_id)]
/// struct OrderCreated {
///     order_id: i64,
/// }
///
/// let record = Record::of(&OrderCreated { order_id: 7 }, &SystemClock)?;
/// assert_eq!((&*record.event, &*record.key), ("order.created", "7"));
/// assert_eq!(record.payload, r#"{"order_id":7}"#);
/// # Ok::<(), outbox::record::EventError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its place in the order of all records; given by the database.
    pub id: i64,
    /// Stays the same over all deliveries: the key for idempotency in other systems.
    pub event_id: Uuid,
    /// The stored name of the event.
    pub event: String,
    /// The version of the payload's shape.
    pub version: u32,
    /// Records of one key are handled in order.
    pub key: String,
    /// The event as JSON text.
    pub payload: String,
    /// What the publisher added, among it the trace context.
    pub headers: BTreeMap<String, String>,
    /// When it was published.
    pub created_at: Timestamp,
    /// Wins over the policy's, where the publisher gave one.
    pub max_retries: Option<u32>,
}

/// An event that cannot be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The event's `validate` refused it.
    #[error("event `{event}` is not valid")]
    Invalid {
        /// The name of the event.
        event: &'static str,
        /// Why.
        source: BoxError,
    },
    /// The event could not be written as JSON.
    #[error("event `{event}` cannot be written as JSON")]
    Encode {
        /// The name of the event.
        event: &'static str,
        /// Why.
        source: serde_json::Error,
    },
}

impl Record {
    /// The record of an event that is published now. Without a key it gets one of its own.
    ///
    /// # Errors
    /// When the event is not valid or cannot be written as JSON.
    pub fn of<E: OutboxEvent>(event: &E, clock: &dyn Clock) -> Result<Self, EventError> {
        event.validate().map_err(|source| EventError::Invalid {
            event: E::NAME,
            source,
        })?;
        let payload = event.to_json().map_err(|source| EventError::Encode {
            event: E::NAME,
            source,
        })?;
        let event_id = Uuid::now_v7();
        Ok(Self {
            id: 0,
            event_id,
            event: E::NAME.to_owned(),
            version: E::VERSION,
            key: event.key().unwrap_or_else(|| event_id.to_string()),
            payload,
            headers: BTreeMap::new(),
            created_at: clock.now(),
            max_retries: None,
        })
    }

    /// The event that the payload holds, checked by its `validate`.
    pub(crate) fn decode<E: OutboxEvent>(&self) -> Result<E, HandlerError> {
        let event = E::from_json(&self.payload).map_err(|source| {
            let undecodable = Undecodable {
                event: E::NAME,
                stored: self.version,
                known: E::VERSION,
                source,
            };
            HandlerError::of_kind(FailureKind::Undecodable, undecodable)
        })?;
        event.validate().map_err(|source| {
            let event = E::NAME;
            let invalid = EventError::Invalid { event, source };
            HandlerError::of_kind(FailureKind::Invalid, invalid)
        })?;
        Ok(event)
    }
}

/// A payload that does not have the shape of the handler's event.
#[derive(Debug, thiserror::Error)]
#[error("the payload (version {stored}) cannot be read as event `{event}` (version {known} here)")]
struct Undecodable {
    event: &'static str,
    stored: u32,
    known: u32,
    source: serde_json::Error,
}
