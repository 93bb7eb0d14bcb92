//! [`Console`]: an exporter of traces that prints them. It has only what an example needs.

use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};

/// Prints each span when it ends, and keeps it.
#[derive(Debug, Clone, Default)]
pub struct Console {
    ended: Arc<Mutex<Vec<Ended>>>,
}

/// A span that has ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// Its trace, in hexadecimal digits.
    pub trace: String,
}

impl Console {
    /// All spans so far, in the order in which they ended.
    #[must_use]
    pub fn ended(&self) -> Vec<Ended> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.clone()
    }
}

impl SpanExporter for Console {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        for span in spans {
            let (name, trace) = (span.name, span.span_context.trace_id().to_string());
            let (id, parent) = (span.span_context.span_id(), span.parent_span_id);
            // The source location and the thread are left out.
            let shown = ["handler", "attempt", "outcome", "failure", "record_id"];
            let fields: Vec<String> = (span.attributes.iter())
                .filter(|field| shown.contains(&field.key.as_str()))
                .map(|field| format!(" {}={}", field.key, field.value))
                .collect();
            println!(
                "trace {trace} span {id} in {parent}: {name}{}",
                fields.concat()
            );
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.push(Ended {
                name: name.into_owned(),
                trace,
            });
        }
        Ok(())
    }
}
