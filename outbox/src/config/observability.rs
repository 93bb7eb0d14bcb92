//! `observability`: what log lines and spans may tell.

use serde::{Deserialize, Serialize};

/// `observability`: what log lines and spans may tell. Payloads and the texts of errors are never
/// in them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ObservabilityConfig {
    /// Whether the keys of records are in them. Keys often are somebody's number or address, and
    /// logs are read by more people than tables. Default: false.
    pub log_keys: bool,
}
