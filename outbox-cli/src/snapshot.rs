//! [`Snapshot`]: what `outbox status` and `outbox watch` show. Only this file calls the counting
//! functions of [`Operations`].

use outbox::{
    Database,
    operations::{BlockedLane, Counts, ErrorCount, EventCounts, Instance, Operations, Precision},
};
use serde::Serialize;

use crate::failure::Result;

/// How many events, errors and lanes are shown.
pub(crate) const SHOWN: usize = 10;

/// The state of the outbox at one time, as both commands print it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Snapshot {
    /// They are exact if every number here was counted, not estimated.
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Whether the numbers of finished records were counted, not estimated.
    #[serde(skip)]
    pub(crate) has_exact_counts: bool,
    /// Whether the numbers by error and by event were counted, not estimated.
    #[serde(skip)]
    pub(crate) has_exact_breakdowns: bool,
    pub(crate) oldest_pending_seconds: Option<f64>,
    /// The most frequent errors.
    pub(crate) errors: Vec<ErrorCount>,
    /// The lanes in which most records wait.
    pub(crate) lanes: Vec<BlockedLane>,
    pub(crate) paused: Vec<String>,
    /// `status` prints their number, `watch` a list.
    #[serde(skip)]
    pub(crate) instances: Vec<Instance>,
    /// Grows with each published record.
    #[serde(skip)]
    pub(crate) newest_record_id: i64,
}

impl Snapshot {
    pub(crate) async fn read<Db: Database>(
        operations: Operations<'_, Db>,
        precision: Precision,
    ) -> Result<Self> {
        let mut counts = operations.counts(precision).await?;
        let has_exact_counts = counts.exact;
        let newest_record_id = operations.newest_record_id().await?;
        let mut errors = operations.counts_by_error(precision).await?;
        errors.items.truncate(SHOWN);
        counts.exact &= errors.exact;
        let oldest_pending = operations.oldest_pending_age().await?;
        Ok(Self {
            counts,
            has_exact_counts,
            has_exact_breakdowns: errors.exact,
            oldest_pending_seconds: oldest_pending.map(|age| age.as_secs_f64()),
            errors: errors.items,
            lanes: operations.blocked_lanes(10).await?,
            paused: operations.paused().await?,
            instances: operations.instances().await?,
            newest_record_id,
        })
    }

    /// The unfinished records by event, with the same precision.
    pub(crate) async fn read_events<Db: Database>(
        &mut self,
        operations: Operations<'_, Db>,
        precision: Precision,
    ) -> Result<Vec<EventCounts>> {
        let events = operations.counts_by_event(precision).await?;
        self.has_exact_breakdowns &= events.exact;
        self.counts.exact &= events.exact;
        Ok(events.items)
    }
}
