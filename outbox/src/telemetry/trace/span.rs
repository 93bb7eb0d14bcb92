//! The spans of publications, attempts and invocations.
//!
//! If no subscriber is interested, a span costs the read of one variable. Fields are computed for
//! enabled spans only. A disabled span is `None`, so that the caller can poll the future directly.

use tracing::{Span, field::Empty};

use crate::telemetry::trace::outcome::{self, PublishOutcome};
use crate::{
    handler::Outcome,
    record::{Attempt, Metadata, Record},
    registry::HandlerEntry,
    retry::Decision,
};

/// Log filters switch the spans on and off by this target, without the log lines.
const TARGET: &str = "outbox::span";

/// The span of one attempt at a record: a child of the span that published the record.
pub(crate) fn attempt(handler: &HandlerEntry, record: &Record, attempt: Attempt) -> Option<Span> {
    let span = tracing::info_span!(
        target: TARGET,
        "outbox.attempt",
        otel.kind = "consumer",
        otel.status_code = Empty,
        handler = handler.id(),
        event = &*record.event,
        record_id = record.id,
        attempt = attempt.number,
        key = handler.log.key(record),
        outcome = Empty,
        failure = Empty,
    );
    if span.is_disabled() {
        return None;
    }
    #[cfg(feature = "opentelemetry")]
    super::carry::continue_trace(&span, &record.headers);
    Some(span)
}

/// Records the outcome of an attempt. `None`: the attempt was not started.
pub(crate) fn decided(span: &Span, decision: Option<&Decision>) {
    let (outcome, error) = outcome::of_attempt(decision);
    span.record("outcome", outcome);
    if let Some(error) = error {
        span.record("failure", error.kind().name());
    }
    if let Some(Decision::RetryAt { .. } | Decision::Failed { .. }) = decision {
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of one invocation of a handler or its fallback, inside the span of the attempt.
pub(crate) fn handler(metadata: &Metadata, fallback: bool) -> Option<Span> {
    let span = tracing::info_span!(
        target: TARGET,
        "outbox.handler",
        otel.status_code = Empty,
        handler = metadata.handler_id(),
        fallback,
        outcome = Empty,
        failure = Empty,
    );
    (!span.is_disabled()).then_some(span)
}

/// Records the outcome of an invocation.
pub(crate) fn invoked(span: &Span, outcome: &Outcome) {
    let (name, error) = outcome::of_invocation(outcome);
    span.record("outcome", name);
    if let Some(error) = error {
        span.record("failure", error.kind().name());
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of one publication. Disabled if no subscriber is interested.
pub(crate) fn publish(event: &str, records: usize) -> Span {
    tracing::info_span!(
        target: TARGET,
        "outbox.publish",
        otel.kind = "producer",
        otel.status_code = Empty,
        event,
        records,
        record_id = Empty,
        key = Empty,
        outcome = Empty,
    )
}

/// Records the outcome of a publication.
pub(crate) fn published(span: &Span, outcome: PublishOutcome) {
    span.record("outcome", outcome.name());
    if outcome == PublishOutcome::Failed {
        span.record("otel.status_code", "ERROR");
    }
}
