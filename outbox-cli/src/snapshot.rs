//! [`Snapshot`]: what both `outbox status` and `outbox watch` show.

use outbox::{Database, operations};
use serde::Serialize;

use crate::{failure::Result, session::Session};

/// How many events, errors and lanes are shown.
pub(crate) const SHOWN: usize = 10;

/// The state of the outbox at one time, as both commands print it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Snapshot {
    /// They are exact if every number here was counted, not estimated.
    #[serde(flatten)]
    pub(crate) counts: operations::Counts,
    /// Whether the numbers of finished records were counted, not estimated.
    #[serde(skip)]
    pub(crate) has_exact_counts: bool,
    /// Whether the numbers by error and by event were counted, not estimated.
    #[serde(skip)]
    pub(crate) has_exact_breakdowns: bool,
    pub(crate) oldest_pending_seconds: Option<f64>,
    /// The most frequent errors.
    pub(crate) errors: Vec<operations::ErrorCount>,
    /// The lanes in which most records wait.
    pub(crate) lanes: Vec<operations::BlockedLane>,
    pub(crate) paused: Vec<String>,
    /// `status` prints their number, `watch` a list.
    #[serde(skip)]
    pub(crate) instances: Vec<operations::Instance>,
    /// Grows with each published record.
    #[serde(skip)]
    pub(crate) newest_record_id: i64,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn snapshot(&self, precision: operations::Precision) -> Result<Snapshot> {
        let mut counts = self.operations.counts(precision).await?;
        let has_exact_counts = counts.exact;
        let newest_record_id = self.operations.newest_record_id().await?;
        let mut errors = self.operations.counts_by_error(precision).await?;
        errors.items.truncate(SHOWN);
        counts.exact &= errors.exact;
        let oldest_pending = self.operations.oldest_pending_age().await?;
        Ok(Snapshot {
            counts,
            has_exact_counts,
            has_exact_breakdowns: errors.exact,
            oldest_pending_seconds: oldest_pending.map(|age| age.as_secs_f64()),
            errors: errors.items,
            lanes: self.operations.blocked_lanes(10).await?,
            paused: self.operations.paused().await?,
            instances: self.operations.instances().await?,
            newest_record_id,
        })
    }
}
