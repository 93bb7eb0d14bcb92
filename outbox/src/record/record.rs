//! [`Record`]: one published event as it is stored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    handler::{BoxError, FailureKind, HandlerError},
    outbox::clock::Clock,
    record::OutboxEvent,
};

/// The longest name, id or key, in bytes. Every database can index this length.
pub(crate) const LONGEST_NAME: usize = 255;

/// One published event as it is stored.
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
    /// The position in the order of all records. The database assigns it.
    pub id: i64,
    /// The same in every attempt: use it as an idempotency key in other systems.
    pub event_id: Uuid,
    /// The stored name of the event.
    pub event: String,
    /// The version of the payload.
    pub version: u32,
    /// The key. Handlers get the records of one key in order.
    pub key: String,
    /// The event as JSON text.
    pub payload: String,
    /// The headers of the publisher, and the trace context.
    pub headers: BTreeMap<String, String>,
    /// The time of publishing.
    pub created_at: Timestamp,
    /// The `max_retries` of the publisher. It takes precedence over the policies of handlers.
    pub max_retries: Option<u32>,
    /// The `max-retries` of the publisher's configuration, if `retry.pin-at-schedule` is on. It counts
    /// for handlers whose number of retries comes from the configuration or the default.
    pub pinned_max_retries: Option<u32>,
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
        /// The error of `validate`.
        source: BoxError,
    },
    /// The event could not be written as JSON.
    #[error("event `{event}` cannot be written as JSON")]
    Encode {
        /// The name of the event.
        event: &'static str,
        /// The error of the encoder.
        source: serde_json::Error,
    },
    /// The text of an event without a type is not JSON.
    #[error("the payload of event `{event}` is not the text of one JSON value")]
    NotJson {
        /// The name of the event.
        event: String,
        /// The place in the text, and what is wrong there.
        source: serde_json::Error,
    },
    /// An event without a type has a name that no event can have.
    #[error(
        "{event:?} cannot be the name of an event; use 1 to 255 bytes without control characters and without a space at an end"
    )]
    BadName {
        /// The name.
        event: String,
    },
}

impl Record {
    /// The record of an event that is published now. An event without a key gets a unique key.
    ///
    /// # Errors
    /// If the event is not valid or cannot be written as JSON.
    pub fn of<E: OutboxEvent>(event: &E, clock: &dyn Clock) -> Result<Self, EventError> {
        event.validate().map_err(|source| EventError::Invalid {
            event: E::NAME,
            source,
        })?;
        let payload = event.to_json().map_err(|source| EventError::Encode {
            event: E::NAME,
            source,
        })?;
        Ok(Self::new(E::NAME, E::VERSION, event.key(), payload, clock))
    }

    /// A record that is not stored yet. `None`: it gets a key of its own.
    pub(super) fn new(
        event: &str,
        version: u32,
        key: Option<String>,
        payload: String,
        clock: &dyn Clock,
    ) -> Self {
        let event_id = Uuid::now_v7();
        Self {
            id: 0,
            event_id,
            event: event.to_owned(),
            version,
            key: key.unwrap_or_else(|| event_id.to_string()),
            payload,
            headers: BTreeMap::new(),
            created_at: clock.now(),
            max_retries: None,
            pinned_max_retries: None,
        }
    }

    /// All tests build their records with this, so that a new field changes one function only.
    #[cfg(test)]
    pub(crate) fn for_tests(id: i64, key: &str, event: &str) -> Self {
        Self {
            id,
            event_id: Uuid::now_v7(),
            event: event.to_owned(),
            version: 1,
            key: key.to_owned(),
            payload: "{}".to_owned(),
            headers: BTreeMap::new(),
            created_at: Timestamp::UNIX_EPOCH,
            max_retries: None,
            pinned_max_retries: None,
        }
    }

    /// The event in the payload, checked by its `validate`.
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

/// The payload cannot be read as the event of the handler.
#[derive(Debug, thiserror::Error)]
#[error("the payload (version {stored}) cannot be read as event `{event}` (version {known} here)")]
struct Undecodable {
    event: &'static str,
    stored: u32,
    known: u32,
    source: serde_json::Error,
}
