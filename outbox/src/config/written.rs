//! [`Written`]: a [`Config`] as a file may have it.

use std::time::Duration;

use super::{
    Config, LockingConfig, MetricsConfig, ObservabilityConfig, ProcessingConfig, RetryConfig,
    SchemaInitializationConfig, declare::sections, duration,
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

sections! {
    /// A [`Config`] as a file may have it: the lists of errors are in `retry`, or at the top level.
    pub(super) struct Written {
        #[serde(with = "duration::millis")]
        poll_interval: Duration = Duration::from_secs(5),
        locking: LockingConfig = LockingConfig::default(),
        #[serde(with = "duration::millis")]
        stuck_threshold: Option<Duration> = None,
        schema_initialization: SchemaInitializationConfig = SchemaInitializationConfig::default(),
        processing: ProcessingConfig = ProcessingConfig::default(),
        metrics: MetricsConfig = MetricsConfig::default(),
        observability: ObservabilityConfig = ObservabilityConfig::default(),
        retry: RetryConfig = RetryConfig::default(),
        include_exceptions: Vec<String> = Vec::new(),
        exclude_exceptions: Vec<String> = Vec::new(),
    }
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
