//! [`Written`]: a [`Config`] as a file may have it.

use std::time::Duration;

use serde::Deserialize;

use super::{
    Config, LockingConfig, MetricsConfig, ObservabilityConfig, ProcessingConfig, RetryConfig,
    SchemaInitializationConfig, duration,
};

/// The keys of [`Written`]. The loader recognises with them a key outside of our section.
#[cfg(any(test, feature = "config"))]
pub(super) const KEYS: [&str; 10] = [
    "poll-interval",
    "locking",
    "stuck-threshold",
    "schema-initialization",
    "processing",
    "metrics",
    "observability",
    "retry",
    "include-exceptions",
    "exclude-exceptions",
];

/// A [`Config`] as a file may have it: the lists of errors are in `retry`, or at the top level.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Written {
    #[serde(with = "duration::millis")]
    poll_interval: Duration,
    locking: LockingConfig,
    #[serde(with = "duration::optional_millis")]
    stuck_threshold: Option<Duration>,
    schema_initialization: SchemaInitializationConfig,
    processing: ProcessingConfig,
    metrics: MetricsConfig,
    observability: ObservabilityConfig,
    retry: RetryConfig,
    include_exceptions: Vec<String>,
    exclude_exceptions: Vec<String>,
}

impl From<Written> for Config {
    fn from(written: Written) -> Self {
        let mut retry = written.retry;
        if !written.include_exceptions.is_empty() || !written.exclude_exceptions.is_empty() {
            let policy = retry.default.get_or_insert_default();
            policy.include_exceptions.extend(written.include_exceptions);
            policy.exclude_exceptions.extend(written.exclude_exceptions);
        }
        Self {
            poll_interval: written.poll_interval,
            locking: written.locking,
            stuck_threshold: written.stuck_threshold,
            schema_initialization: written.schema_initialization,
            processing: written.processing,
            metrics: written.metrics,
            observability: written.observability,
            retry,
        }
    }
}

impl Default for Written {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(5),
            locking: LockingConfig::default(),
            stuck_threshold: None,
            schema_initialization: SchemaInitializationConfig::default(),
            processing: ProcessingConfig::default(),
            metrics: MetricsConfig::default(),
            observability: ObservabilityConfig::default(),
            retry: RetryConfig::default(),
            include_exceptions: Vec::new(),
            exclude_exceptions: Vec::new(),
        }
    }
}
