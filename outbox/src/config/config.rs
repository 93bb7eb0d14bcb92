//! [`Config`]: all settings of an outbox.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    ConfigError, LockingConfig, MetricsConfig, ObservabilityConfig, ProcessingConfig, RetryConfig,
    SchemaInitializationConfig, check, duration, written::Written,
};

/// All settings, with their defaults.
///
/// | key | field | default |
/// |---|---|---|
/// | `poll-interval` | [`poll_interval`](Self::poll_interval) | 5 s |
/// | `locking.extension-seconds`, or `stuck-threshold` | [`lease`](Self::lease) | 30 s |
/// | `locking.refresh-threshold` | [`renew_below`](Self::renew_below) | two thirds of the lease |
/// | `schema-initialization.enabled` | [`schema_initialization`](Self::schema_initialization) | true |
/// | `schema-initialization.partitions` | [`SchemaInitializationConfig::partitions`] | 64 |
/// | `processing.stop-on-first-failure` | [`processing`](Self::processing) | true |
/// | `processing.retention` | [`Retention`](super::Retention) | 7 days |
/// | `processing.max-in-memory` | [`ProcessingConfig::max_in_memory`] | 16384 |
/// | `metrics.sampling` | [`MetricsConfig::sampling`] | true |
/// | `metrics.sample-interval` | [`MetricsConfig::sample_interval`] | 15 s |
/// | `observability.log-keys` | [`ObservabilityConfig::log_keys`] | false |
/// | `retry` | [`retry`](Self::retry) | see [`RetryConfig`] |
///
/// A duration is a whole number of milliseconds, or text such as `"5s"`. In `locking` a number
/// counts seconds. [`Config::load`] reads a file, and `serde` any other format:
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
    /// How often the dispatcher polls when no signal wakes it.
    #[serde(with = "duration::millis")]
    pub poll_interval: Duration,
    /// How long a lease lasts, and when the process renews it.
    #[serde(skip_serializing_if = "LockingConfig::is_default")]
    pub locking: LockingConfig,
    /// How long a lease lasts: another name of [`locking.lease`](LockingConfig::lease). Set one of
    /// the two.
    #[serde(with = "duration::millis", skip_serializing_if = "Option::is_none")]
    pub stuck_threshold: Option<Duration>,
    /// Whether the tables are created and migrated at the start.
    pub schema_initialization: SchemaInitializationConfig,
    /// The order after a failure, retention, memory.
    pub processing: ProcessingConfig,
    /// How often the dispatcher reads the gauges from the database.
    pub metrics: MetricsConfig,
    /// What log lines and spans may contain.
    pub observability: ObservabilityConfig,
    /// The default retry policy and the named ones.
    pub retry: RetryConfig,
}

impl Default for Config {
    fn default() -> Self {
        Written::default().into()
    }
}

impl Config {
    /// How long a lease lasts: `locking.extension-seconds` or `stuck-threshold`, otherwise 30 s.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.locking
            .lease
            .or(self.stuck_threshold)
            .unwrap_or(LockingConfig::DEFAULT_LEASE)
    }

    /// The process renews a lease when less than this time remains: `locking.refresh-threshold`,
    /// otherwise two thirds of the lease.
    #[must_use]
    pub fn renew_below(&self) -> Duration {
        self.locking
            .refresh_threshold
            .unwrap_or_else(|| self.lease() / 3 * 2)
    }

    /// Whether the configuration sets the default retry policy. `retry.policies` and
    /// `retry.pin-at-schedule` do not.
    #[must_use]
    pub fn configures_retry(&self) -> bool {
        self.retry.default.is_some()
    }

    /// Finds the first value that cannot work, for example a delay of zero, or a longest delay below
    /// the first. [`load`](Self::load) and [`build`](crate::OutboxBuilder::build) call this.
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
    /// [`ConfigError::Invalid`] with the key and the problem with its value.
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
    use crate::config::written::KEYS;

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
    fn a_serialized_config_reads_back_as_the_same() {
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
