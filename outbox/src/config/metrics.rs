//! [`MetricsConfig`]: the section `metrics`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// The section `metrics`: how often a dispatcher reads gauges from the database. All other metrics
/// need no statement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct MetricsConfig {
    /// Whether the dispatcher reads gauges: records by status, age of the oldest pending record,
    /// blocked lanes. Default: true.
    pub sampling: bool,
    /// The time between two samples. A sample is three to six small statements. Default: 15 s, a
    /// usual scrape interval of Prometheus.
    #[serde(with = "duration::millis")]
    pub sample_interval: Duration,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self {
            sampling: true,
            sample_interval: Duration::from_secs(15),
        }
    }
}
