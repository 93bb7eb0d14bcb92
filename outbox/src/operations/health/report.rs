//! [`Health`]: the answer to a probe.

use std::time::Duration;

use serde::Serialize;

use crate::operations::view::seconds;

/// How an outbox is; see [`Outbox::health`](crate::outbox::Outbox::health). Written as JSON, it is the
/// body of an answer to a probe: words and numbers, nothing that was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// The dispatcher, if one was started, has not panicked and comes around its loop. If not,
    /// restarting the process helps.
    pub live: bool,
    /// It is alive, was not stopped, the database answers and has the tables, and neither lag nor
    /// failures are above what is allowed.
    pub ready: bool,
    /// What the dispatcher of this process does.
    pub dispatcher: DispatcherHealth,
    /// What the database says.
    pub database: DatabaseHealth,
    /// How long ago the oldest pending record was published, of all processes; zero if none is
    /// pending. `None` if it is not known. In seconds as JSON.
    #[serde(rename = "lag_seconds", serialize_with = "seconds")]
    pub lag: Option<Duration>,
    /// How many deliveries failed for good and wait for a person. Counted up to one more than is
    /// allowed, and up to 1,000 without a limit. `None` if it is not known.
    pub failed: Option<u64>,
    /// Whether the lag is above what is allowed.
    pub lags: bool,
    /// Whether there are more failures than allowed.
    pub fails: bool,
}

/// What the dispatcher of this process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DispatcherHealth {
    /// None was started: this process only publishes, or has not got there yet.
    NotStarted,
    /// It runs.
    Running,
    /// It has not come around its loop for too long: something keeps the threads of the runtime.
    Stuck,
    /// It was shut down, or its handle was dropped.
    Stopped,
    /// It panicked, which it never should.
    Panicked,
}

/// What the database says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DatabaseHealth {
    /// It answers, and the tables are there.
    Ok,
    /// It answers, and the tables are not there, or those of another version.
    NotMigrated,
    /// It refuses, or cannot be reached.
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
