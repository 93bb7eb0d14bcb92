//! `locking`: the lease and its renewal.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// `locking`: how long a process owns what it works on, and when it renews that.
///
/// Bare numbers count **seconds** here, as in `extension-seconds: 300`; text such as `"5m"` says
/// its unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LockingConfig {
    /// `extension-seconds`: how long a lease lasts unless it is renewed. A frozen process is
    /// replaced after this long; a killed one at once, where the database tells. Not together with `stuck-threshold`; without either, 30 s.
    #[serde(
        rename = "extension-seconds",
        with = "duration::optional_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub lease: Option<Duration>,
    /// Renew when less than this remains. Below the lease; two thirds of it by default.
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
