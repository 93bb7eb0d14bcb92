//! The trace of the publisher, as OpenTelemetry knows it: into the headers of a record, and out of
//! them as the parent of an attempt.

use std::collections::BTreeMap;

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::telemetry::trace::w3c::{LONGEST_STATE, TRACESTATE};
use crate::telemetry::trace::w3c::{TRACEPARENT, trace_parent, trace_state};

/// The headers of whatever is published in the span that is current now; none without a trace.
pub(crate) fn carried() -> Vec<(String, String)> {
    // A span of `tracing` first; else one that somebody made current by OpenTelemetry's own means.
    let of_span = Span::current().context();
    let context = match of_span.span().span_context().is_valid() {
        true => of_span,
        false => Context::current(),
    };
    let span = context.span();
    let span = span.span_context();
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

/// Makes the span a child of the one in these headers, if there is one. Has to come before the span
/// is entered.
pub(super) fn go_on(span: &Span, headers: &BTreeMap<String, String>) {
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
    // Nobody may be there who exports traces.
    let _ = span.set_parent(Context::new().with_remote_span_context(parent));
}
