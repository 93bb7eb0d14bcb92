//! [`ObservabilityConfig`]: the section `observability`.

use serde::{Deserialize, Serialize};

/// The section `observability`: what log lines and spans may contain. They never contain payloads
/// and the texts of errors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ObservabilityConfig {
    /// Whether they contain the keys of records. A key is often personal data, such as a customer
    /// number, and more people read logs than tables. Default: false.
    pub log_keys: bool,
}
