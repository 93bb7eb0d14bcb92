//! Metrics by name, spans, log lines.

pub mod metrics;
pub(crate) mod trace;
