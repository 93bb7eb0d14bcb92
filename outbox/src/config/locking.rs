//! `locking`: the lease and its renewal.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// The section `locking`: how long a lease lasts, and when a process renews it.
///
/// Numbers count **seconds** here, as in `extension-seconds: 300`. Text such as `"5m"` has its own
/// unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LockingConfig {
    /// `extension-seconds`: how long a lease lasts unless it is renewed. Peers take over from a frozen
    /// process after this time. They take over from a killed process within about a second where the
    /// database reports lost sessions. Do not set `stuck-threshold` too. Default: 30 s.
    #[serde(
        rename = "extension-seconds",
        with = "duration::optional_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub lease: Option<Duration>,
    /// A process renews a lease when less than this time remains. Must be shorter than the lease.
    /// Default: two thirds of the lease.
    #[serde(
        with = "duration::optional_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub refresh_threshold: Option<Duration>,
}

impl LockingConfig {
    pub(super) const DEFAULT_LEASE: Duration = Duration::from_secs(30);

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
