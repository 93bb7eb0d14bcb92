//! [`Metadata`]: what a handler may know about the record it was given.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    record::{Attempt, Record},
    telemetry::trace::{TRACEPARENT, trace_parent, trace_state},
};

/// What is known about a record and this attempt at it. Take it as `&Metadata`.
///
/// ```
/// # use outbox::{outbox_handler, Metadata, OutboxEvent};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated {}
/// #[outbox_handler]
/// async fn charge_card(event: OrderCreated, meta: &Metadata) {
///     // The same over all retries: an idempotency key for the outside world.
///     let idempotency_key = meta.event_id();
///     if meta.is_retry() {
///         println!("attempt {} of {idempotency_key}", meta.attempt());
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Metadata {
    record: Arc<Record>,
    handler: &'static str,
    attempt: Attempt,
}

impl Metadata {
    pub(crate) fn new(record: Arc<Record>, handler: &'static str, attempt: Attempt) -> Self {
        Self {
            record,
            handler,
            attempt,
        }
    }

    /// The record's place in the order of all records.
    #[must_use]
    pub fn record_id(&self) -> i64 {
        self.record.id
    }

    /// Stays the same over all deliveries: the key for idempotency in other systems.
    #[must_use]
    pub fn event_id(&self) -> Uuid {
        self.record.event_id
    }

    /// The stored name of the event.
    #[must_use]
    pub fn event(&self) -> &str {
        &self.record.event
    }

    /// The stored version of the payload's shape.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.record.version
    }

    /// Records of one key are handled in order.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.record.key
    }

    /// The id of the handler that is running.
    #[must_use]
    pub fn handler_id(&self) -> &'static str {
        self.handler
    }

    /// Which invocation this is; 1 is the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt.number
    }

    /// How many invocations failed before, of those that use up retries.
    #[must_use]
    pub fn failure_count(&self) -> u32 {
        self.attempt.failure_count
    }

    /// Whether the handler has been invoked with this record before.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.attempt.is_retry()
    }

    /// When the event was published.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.record.created_at
    }

    /// What the publisher added.
    #[must_use]
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.record.headers
    }

    /// The publisher's trace context (W3C `traceparent`), if it had one. One that is not valid is
    /// none; it is in the [headers](Self::headers) all the same.
    #[must_use]
    pub fn trace_context(&self) -> Option<&str> {
        let parent = self.record.headers.get(TRACEPARENT)?;
        trace_parent(parent).map(|_| &**parent)
    }

    /// What belongs to the [trace context](Self::trace_context) (W3C `tracestate`), if there is one.
    #[must_use]
    pub fn trace_state(&self) -> Option<&str> {
        self.trace_context()?;
        trace_state(&self.record.headers)
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.record
    }
}
