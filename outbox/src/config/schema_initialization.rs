//! [`SchemaInitializationConfig`]: the section `schema-initialization`.

use serde::{Deserialize, Serialize};

/// The section `schema-initialization`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SchemaInitializationConfig {
    /// Whether [`build`](crate::OutboxBuilder::build) creates and migrates the tables. Default: true.
    pub enabled: bool,
}

impl Default for SchemaInitializationConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}
