//! Settings as plain data, and how they are read from files and the environment; see the
//! [guide](crate::guide::configuration).
//!
//! [`Config`] and the structs in it always exist. The feature `config` (on by default) adds
//! [`Config::load`], which reads text into a tree of nodes that know their places, lays environment
//! variables over it, hands it to `serde`, and checks the values.

mod check;
mod duration;
mod error;
pub(crate) mod error_names;
mod jitter;
#[cfg(feature = "config")]
mod load;
mod locking;
mod metrics;
mod observability;
mod place;
mod policy;
mod retention;
mod retry;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::record::limits::Limits;
pub use error::ConfigError;
pub use error_names::DuplicateErrorName;
#[cfg(feature = "config")]
pub use load::{ConfigLoader, Format};
pub use locking::LockingConfig;
pub use metrics::MetricsConfig;
pub use observability::ObservabilityConfig;
pub use place::Place;
pub use policy::{
    BasePolicy, ExponentialConfig, FixedConfig, JitteredConfig, LinearConfig, PolicyConfig,
    PolicyKind,
};
pub use retention::Retention;
pub use retry::RetryConfig;

/// Everything that can be configured, with its defaults.
///
/// | key | field | default |
/// |---|---|---|
/// | `poll-interval` | [`poll_interval`](Self::poll_interval) | 5 s |
/// | `locking.extension-seconds`, or `stuck-threshold` | [`lease`](Self::lease) | 30 s |
/// | `locking.refresh-threshold` | [`renew_below`](Self::renew_below) | two thirds of the lease |
/// | `schema-initialization.enabled` | [`schema_initialization`](Self::schema_initialization) | true |
/// | `processing.stop-on-first-failure` | [`processing`](Self::processing) | true |
/// | `processing.retention` | [`Retention`] | 7 days |
/// | `processing.max-in-memory` | [`ProcessingConfig::max_in_memory`] | 16384 |
/// | `metrics.sampling` | [`MetricsConfig::sampling`] | true |
/// | `metrics.sample-interval` | [`MetricsConfig::sample_interval`] | 15 s |
/// | `observability.log-keys` | [`ObservabilityConfig::log_keys`] | false |
/// | `retry` | [`retry`](Self::retry) | see [`RetryConfig`] |
///
/// Durations are whole milliseconds or text such as `"5s"`; a bare number in `locking` counts
/// seconds. [`Config::load`] reads a file, and `serde` any other format:
///
/// ```
/// use std::time::Duration;
/// use outbox::Config;
///
/// let config: Config = serde_json::from_str(
///     r#"{ "poll-interval": "500ms", "locking": { "extension-seconds": 60 } }"#,
/// )?;
/// assert_eq!(config.poll_interval, Duration::from_millis(500));
/// assert_eq!(config.lease(), Duration::from_secs(60));
/// assert!(config.processing.stop_on_first_failure && !config.configures_retry());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(from = "Written", rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Config {
    /// How often to look for work when nothing wakes the dispatcher: the poll underneath.
    #[serde(with = "duration::millis")]
    pub poll_interval: Duration,
    /// How long this process owns what it works on, and when it renews that.
    #[serde(skip_serializing_if = "LockingConfig::is_default")]
    pub locking: LockingConfig,
    /// The other way to say how long a lease lasts. Not together with
    /// [`locking.lease`](LockingConfig::lease).
    #[serde(
        with = "duration::optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub stuck_threshold: Option<Duration>,
    /// Whether the tables are created and migrated at start.
    pub schema_initialization: SchemaInitializationConfig,
    /// What a failure means for the records behind it.
    pub processing: ProcessingConfig,
    /// How often the gauges look at the database.
    pub metrics: MetricsConfig,
    /// What log lines and spans may tell.
    pub observability: ObservabilityConfig,
    /// The default retry policy and the named ones.
    pub retry: RetryConfig,
}

/// `schema-initialization`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SchemaInitializationConfig {
    /// Create and migrate the tables at start. Default: true.
    pub enabled: bool,
}

/// `processing`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ProcessingConfig {
    /// A lane waits behind its failing record, through every retry. Default: true.
    pub stop_on_first_failure: bool,
    /// What becomes of records that are done. Default: kept for seven days.
    pub retention: Retention,
    /// How many records a dispatcher reads ahead into memory, running and waiting; retries that are
    /// due come on top. Default: 16384.
    pub max_in_memory: u32,
}

/// The keys of [`Written`], to recognise a file that has none of the prefixes.
#[cfg(any(test, feature = "config"))]
const KEYS: [&str; 10] = [
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

/// A [`Config`] as it may be written: the lists of errors stand in `retry` or beside it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Written {
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

impl Default for Config {
    fn default() -> Self {
        Written::default().into()
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

impl Default for SchemaInitializationConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Default for ProcessingConfig {
    fn default() -> Self {
        Self {
            stop_on_first_failure: true,
            retention: Retention::default(),
            max_in_memory: 16_384,
        }
    }
}

impl Config {
    /// How long this process owns what it works on without renewing: `locking.extension-seconds`
    /// or `stuck-threshold`, else 30 s.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.locking
            .lease
            .or(self.stuck_threshold)
            .unwrap_or(LockingConfig::DEFAULT_LEASE)
    }

    /// A lease is renewed when less than this remains of it: `locking.refresh-threshold`, else
    /// two thirds of the lease.
    #[must_use]
    pub fn renew_below(&self) -> Duration {
        self.locking
            .refresh_threshold
            .unwrap_or_else(|| self.lease() / 3 * 2)
    }

    /// Whether anything was said about the default retry policy. `retry.policies` and
    /// `retry.pin-at-schedule` alone say nothing about it.
    #[must_use]
    pub fn configures_retry(&self) -> bool {
        self.retry.default.is_some()
    }

    /// Finds the first value that cannot work: a zero delay, a cap below the first delay, and so
    /// on. [`load`](Self::load) has done so; a configuration from code or from another format has
    /// not been checked yet.
    ///
    /// ```
    /// use std::time::Duration;
    /// use outbox::Config;
    ///
    /// let mut config = Config::default();
    /// config.poll_interval = Duration::ZERO;
    /// let error = config.check().unwrap_err();
    /// assert_eq!(error.to_string(), "`poll-interval` must be longer than zero");
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with the key and what is wrong with its value.
    pub fn check(&self) -> Result<(), ConfigError> {
        check::config(self).map_err(|mistake| ConfigError::Invalid {
            place: None,
            key: mistake.path.join("."),
            problem: mistake.problem,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_keys_is_what_serde_accepts() {
        let error = serde_json::from_str::<Config>(r#"{ "zzz": 1 }"#).unwrap_err();
        let expected: Vec<String> = KEYS.iter().map(|key| format!("`{key}`")).collect();
        assert!(
            error
                .to_string()
                .contains(&format!("expected one of {} at", expected.join(", "))),
            "{error}"
        );
    }

    #[test]
    fn what_is_written_out_reads_back_as_the_same() {
        let text = r#"{
            "poll-interval": 250, "stuck-threshold": "5m", "processing": {"stop-on-first-failure": false, "retention": "delete", "max-in-memory": 64},
            "metrics": {"sampling": false, "sample-interval": "1m"},
            "observability": {"log-keys": true},
            "retry": {
                "policy": "linear", "jitter": 0.5, "max-elapsed": "2h", "exclude-exceptions": ["std::fmt::Error"],
                "pin-at-schedule": true, "policies": { "bank": { "policy": "jittered" } }
            }
        }"#;
        for text in [text, "{}"] {
            let config: Config = serde_json::from_str(text).unwrap();
            let written = serde_json::to_string(&config).unwrap();
            assert_eq!(
                serde_json::from_str::<Config>(&written).unwrap(),
                config,
                "{written}"
            );
        }
    }

    #[test]
    fn the_defaults_are_valid_and_say_nothing_about_retries() {
        let config = Config::default();
        assert!(config.check().is_ok() && !config.configures_retry());
        assert_eq!(config.lease(), Duration::from_secs(30));
        assert_eq!(config.renew_below(), Duration::from_secs(20));
    }

    #[test]
    fn only_keys_that_shape_the_default_policy_configure_it() {
        let configures = |text| {
            serde_json::from_str::<Config>(text)
                .unwrap()
                .configures_retry()
        };
        assert!(!configures(r#"{ "retry": {} }"#));
        assert!(!configures(
            r#"{ "retry": { "pin-at-schedule": true, "policies": { "a": { "max-retries": 1 } } } }"#
        ));
        assert!(configures(r#"{ "retry": { "max-retries": 3 } }"#));
        assert!(configures(r#"{ "retry": { "fixed": {} } }"#));
        assert!(configures(
            r#"{ "include-exceptions": ["std::io::Error"] }"#
        ));
    }
}
