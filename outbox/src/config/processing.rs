//! [`ProcessingConfig`]: the section `processing`.

use serde::{Deserialize, Serialize};

use super::Retention;

/// The section `processing`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ProcessingConfig {
    /// Whether a failed record blocks its lane until it completes or is discarded. Default: true.
    pub stop_on_first_failure: bool,
    /// How long completed and discarded records are kept. Default: seven days.
    pub retention: Retention,
    /// The most records that a dispatcher holds in memory, running and waiting. Retries that are due
    /// are not counted. Default: 16384.
    pub max_in_memory: u32,
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
