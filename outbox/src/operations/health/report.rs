//! [`Health`]: the result of a probe.

use std::time::Duration;

use serde::Serialize;

use crate::operations::view::seconds;

/// The health of an outbox; see [`Outbox::health`](crate::outbox::Outbox::health). As JSON, it can be the
/// body of the answer to a probe. It contains no published data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// The dispatcher, if one was started, has not panicked, and its event loop runs. If this is false,
    /// restart the process.
    pub live: bool,
    /// The process is alive, its dispatcher was not stopped, the database answers and has the tables, and
    /// neither lag nor failures are above their limits.
    pub ready: bool,
    /// The state of the dispatcher of this process.
    pub dispatcher: DispatcherHealth,
    /// The state of the database.
    pub database: DatabaseHealth,
    /// The time since the oldest pending record of all processes was published; zero if none is pending.
    /// `None` if it is unknown. In seconds as JSON.
    #[serde(rename = "lag_seconds", serialize_with = "seconds")]
    pub lag: Option<Duration>,
    /// The number of failed deliveries. Counted up to one more than the limit, or up to 1,000 without a
    /// limit. `None` if it is unknown.
    pub failed: Option<u64>,
    /// Whether the lag is above its limit.
    pub lags: bool,
    /// Whether the number of failures is above its limit.
    pub fails: bool,
}

/// The state of the dispatcher of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DispatcherHealth {
    /// No dispatcher was started: the process only publishes, or has not started it yet.
    NotStarted,
    /// It runs.
    Running,
    /// Its event loop has not run for too long: something blocks the threads of the runtime.
    Stuck,
    /// It was shut down, or its handle was dropped.
    Stopped,
    /// It panicked, which is a bug.
    Panicked,
}

/// The state of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DatabaseHealth {
    /// It answers, and it has the tables.
    Ok,
    /// It answers, but the tables are missing or have another version.
    NotMigrated,
    /// It returns an error, or cannot be reached.
    Failing,
    /// It did not answer in time, or no connection was free.
    TimedOut,
}

impl DispatcherHealth {
    pub(super) fn is_live(self) -> bool {
        !matches!(self, Self::Stuck | Self::Panicked)
    }

    pub(super) fn is_ready(self) -> bool {
        matches!(self, Self::Running | Self::NotStarted)
    }
}
