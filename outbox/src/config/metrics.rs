//! `metrics`: how often the gauges look at the database.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// `metrics`: how often the gauges of a running dispatcher look at the database. Everything else
/// is counted where it happens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct MetricsConfig {
    /// Whether they do. Default: true. Without it there are no records by status, no age of the
    /// oldest and no blocked lanes.
    pub sampling: bool,
    /// How long from one look to the next: three to six small statements. Default: 15 s, as often
    /// as Prometheus scrapes.
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
