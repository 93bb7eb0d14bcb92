//! The names of metrics, spans, and log lines of attempts.

pub mod metrics;
pub(crate) mod trace;
