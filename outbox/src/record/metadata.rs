//! [`Metadata`]: the record and the attempt, as a handler sees them.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use uuid::Uuid;

use super::{Attempt, Record};
use crate::telemetry::trace::{TRACEPARENT, trace_parent, trace_state};

/// Information about a record and the current attempt. A handler takes it as `&Metadata`.
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
    pub(crate) record: Arc<Record>,
    pub(crate) handler: &'static str,
    pub(crate) attempt: Attempt,
}

impl Metadata {
    /// The position of the record in the order of all records.
    #[must_use]
    pub fn record_id(&self) -> i64 {
        self.record.id
    }

    /// The same in every attempt: use it as an idempotency key in other systems.
    #[must_use]
    pub fn event_id(&self) -> Uuid {
        self.record.event_id
    }

    /// The stored name of the event.
    #[must_use]
    pub fn event(&self) -> &str {
        &self.record.event
    }

    /// The stored version of the payload.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.record.version
    }

    /// The key. Handlers get the records of one key in order.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.record.key
    }

    /// The id of the handler that is running.
    #[must_use]
    pub fn handler_id(&self) -> &'static str {
        self.handler
    }

    /// The number of the invocation; 1 is the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt.number
    }

    /// The number of earlier failures that used up a retry.
    #[must_use]
    pub fn failure_count(&self) -> u32 {
        self.attempt.failure_count
    }

    /// Whether the handler has been invoked with this record before.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.attempt.is_retry()
    }

    /// The time of publishing.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.record.created_at
    }

    /// The headers of the publisher, and the trace context.
    #[must_use]
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.record.headers
    }

    /// The trace context of the publisher (W3C `traceparent`). `None` if it is missing or not valid;
    /// the [headers](Self::headers) contain it also if it is not valid.
    #[must_use]
    pub fn trace_context(&self) -> Option<&str> {
        let parent = self.record.headers.get(TRACEPARENT)?;
        trace_parent(parent).map(|_| &**parent)
    }

    /// The `tracestate` of the [trace context](Self::trace_context), if both are valid.
    #[must_use]
    pub fn trace_state(&self) -> Option<&str> {
        self.trace_context()?;
        trace_state(&self.record.headers)
    }
}
