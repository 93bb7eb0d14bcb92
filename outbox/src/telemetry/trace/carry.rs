//! Passes the OpenTelemetry trace of the publisher on: publishing writes it to the headers of the
//! record, and the span of each attempt gets it as its parent.

use std::collections::BTreeMap;

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::telemetry::trace::w3c::{
    LONGEST_STATE, TRACEPARENT, TRACESTATE, trace_parent, trace_state,
};

/// The trace headers for a record that is published in the current span. Empty without a trace.
pub(crate) fn trace_headers() -> Vec<(String, String)> {
    // The current span of `tracing`. If it belongs to no trace, OpenTelemetry's own current context.
    let of_span = Span::current().context();
    let context = if of_span.span().span_context().is_valid() {
        of_span
    } else {
        Context::current()
    };
    let current = context.span();
    let span = current.span_context();
    if !span.is_valid() {
        return Vec::new();
    }
    let (trace_id, span_id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
    let parent = format!("00-{trace_id}-{span_id}-{:02x}", flags.to_u8());
    let mut headers = vec![(TRACEPARENT.to_owned(), parent)];
    let state = span.trace_state().header();
    if !state.is_empty() && state.len() <= LONGEST_STATE {
        headers.push((TRACESTATE.to_owned(), state));
    }
    headers
}

/// Makes the span a child of the span that these headers name, if they name one. Must be called
/// before the span is entered.
pub(super) fn continue_trace(span: &Span, headers: &BTreeMap<String, String>) {
    let Some(parent) = headers.get(TRACEPARENT) else {
        return;
    };
    let Some((trace_id, span_id, flags)) = trace_parent(parent) else {
        return;
    };
    let state = trace_state(headers).and_then(|state| state.parse::<TraceState>().ok());
    let parent = SpanContext::new(
        TraceId::from(trace_id),
        SpanId::from(span_id),
        TraceFlags::new(flags),
        true,
        state.unwrap_or_default(),
    );
    // Fails if no OpenTelemetry layer is installed. Then there is no trace to continue.
    let _ = span.set_parent(Context::new().with_remote_span_context(parent));
}
