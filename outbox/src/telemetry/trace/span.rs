//! The spans of publications, attempts and invocations.
//!
//! Nobody is interested in most processes most of the time, and then these cost a look at a
//! variable: fields are only computed for a span that is wanted, and what is not wanted is `None`,
//! so that the caller can do without a future that carries a span.

use tracing::{Span, field::Empty};

use crate::telemetry::trace::outcome;
use crate::telemetry::trace::outcome::Sent;
use crate::{
    handler::Outcome,
    record::{Attempt, Metadata, Record},
    registry::HandlerEntry,
    retry::Decision,
};

/// To switch the spans on or off without the log lines.
const TARGET: &str = "outbox::span";

/// The span of one attempt at a record, a child of the span in which it was published.
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
        key = handler.lines.key(record),
        outcome = Empty,
        failure = Empty,
    );
    if span.is_disabled() {
        return None;
    }
    #[cfg(feature = "opentelemetry")]
    super::carry::go_on(&span, &record.headers);
    Some(span)
}

/// What came of an attempt. None: it was not begun.
pub(crate) fn decided(span: &Span, decision: Option<&Decision>) {
    let (outcome, error) = outcome::of_attempt(decision);
    span.record("outcome", outcome);
    if let Some(error) = error {
        span.record("failure", outcome::failure(error));
    }
    if matches!(
        decision,
        Some(Decision::RetryAt { .. } | Decision::Failed { .. })
    ) {
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of one invocation of a handler, or of its fallback, inside that of its attempt.
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

/// What came of an invocation.
pub(crate) fn invoked(span: &Span, outcome: &Outcome) {
    let (word, error) = outcome::of_invocation(outcome);
    span.record("outcome", word);
    if let Some(error) = error {
        span.record("failure", outcome::failure(error));
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of one publication. Disabled if nobody wants it.
pub(crate) fn publish(event: &'static str, records: usize) -> Span {
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

/// What came of a publication.
pub(crate) fn published(span: &Span, sent: Sent) {
    span.record("outcome", sent.word());
    if sent == Sent::Failed {
        span.record("otel.status_code", "ERROR");
    }
}
