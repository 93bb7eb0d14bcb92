//! [`Overview`]: what gauges show. Its cost does not depend on the size of the tables.

use std::time::Duration;

use super::{Counts, DeliveryStatus, Operations, RecordStatus, Status, samples::Samples};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{CappedCount, Database, Operator, Table},
};

/// How much there is, and for how long; see [`Operations::overview`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overview {
    /// Unfinished statuses are exact below 500 of each, finished ones if there are at most 1,024
    /// records. Above that, the counts are estimates from samples.
    pub counts: Counts,
    /// Lanes that wait behind a record that failed for good.
    pub blocked_by_failed: u64,
    /// Lanes that wait behind a record that is to be tried again.
    pub blocked_by_retrying: u64,
    /// How long ago the oldest pending record was published, by the database's clock.
    pub oldest_pending: Option<Duration>,
}

/// How many of each status are counted. How many more there are is estimated.
const CAP: u32 = 500;

impl<Db: Database> Operations<'_, Db> {
    /// What the gauges of a dispatcher show. Reads a few thousand rows at most, whatever the size of
    /// the tables: a few milliseconds.
    ///
    /// ```
    /// # async fn print(outbox: &outbox::Outbox<sqlx::Sqlite>) -> outbox::Result<()> {
    /// let now = outbox.operations().overview().await?;
    /// println!("{} pending, the oldest for {:?}", now.counts.pending, now.oldest_pending);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn overview(&self) -> Result<Overview> {
        let operation = Operation::Overview;
        let mut connection = self.connection(operation).await?;
        Overview::read(&mut self.operator(&mut connection), self.partitions)
            .await
            .during(operation)
    }
}

impl Overview {
    async fn read<Db: Database>(
        operator: &mut Operator<'_, Db>,
        partitions: u16,
    ) -> Result<Self, sqlx::Error> {
        let mut overview = Self::default();
        let capped = operator.capped_counts(CAP).await?;
        for one in &capped {
            overview.counts.add(&one.counted);
        }
        overview.counts.exact = true;
        let counts = overview.counts;

        let mut oldest = None;
        if counts.pending > 0 {
            oldest = operator.oldest_pending(partitions).await?;
            let age = oldest.map(|(age, _)| u64::try_from(age).unwrap_or(0));
            overview.oldest_pending = age.map(Duration::from_micros);
        }
        if let Some((lowest, newest)) = operator.id_range(Table::Record).await? {
            let all = (lowest, newest);
            overview
                .sample(operator, Table::Record, all, |status| {
                    !matches!(status, Status::Record(RecordStatus::Pending))
                })
                .await?;
            // Pending records are the newest. Samples of the whole table would miss them.
            if let Some((_, first)) = oldest.filter(|_| is_capped(counts.pending)) {
                let all = (first, newest);
                overview
                    .sample(operator, Table::Record, all, |status| {
                        matches!(status, Status::Record(RecordStatus::Pending))
                    })
                    .await?;
            }
        }
        let deliveries = [counts.waiting, counts.retrying, counts.failed];
        if deliveries.into_iter().any(is_capped)
            && let Some(all) = operator.id_range(Table::Delivery).await?
        {
            overview
                .sample(operator, Table::Delivery, all, |_| true)
                .await?;
        }
        overview.count_lanes(&capped);
        Ok(overview)
    }

    /// Estimates the statuses that were not counted to their end.
    async fn sample<Db: Database>(
        &mut self,
        operator: &mut Operator<'_, Db>,
        table: Table,
        (lowest, highest): (i64, i64),
        wanted: impl Fn(Status) -> bool,
    ) -> Result<(), sqlx::Error> {
        let samples = Samples::few(lowest, highest);
        self.counts.exact &= samples.is_exact();
        let within = operator.statuses_within(table, &samples.ranges).await?;
        for one in within {
            let estimate = samples.scaled(one.count);
            if let Some(count) = self.place(one.status).filter(|_| wanted(one.status)) {
                *count = estimate.max(*count);
            }
        }
        Ok(())
    }

    /// Where an estimate of this status belongs; nowhere if it was counted to its end.
    fn place(&mut self, status: Status) -> Option<&mut u64> {
        let finished = matches!(
            status,
            Status::Record(RecordStatus::Completed | RecordStatus::Discarded)
        );
        let count = self.counts.place(status)?;
        (finished || is_capped(*count)).then_some(count)
    }

    /// Counts lanes by their heads: only the head of a lane is retrying or failed and blocks.
    fn count_lanes(&mut self, capped: &[CappedCount]) {
        for one in capped {
            let share = |all: u64| match one.counted.count {
                0 => 0,
                counted => {
                    let blocked = u128::from(one.blocking) * u128::from(all) / u128::from(counted);
                    u64::try_from(blocked).unwrap_or(u64::MAX)
                }
            };
            let counts = &self.counts;
            match one.counted.status {
                Status::Delivery(DeliveryStatus::Failed) => {
                    self.blocked_by_failed = share(counts.failed);
                }
                Status::Delivery(DeliveryStatus::Retrying) => {
                    self.blocked_by_retrying = share(counts.retrying);
                }
                Status::Record(_) | Status::Delivery(_) => {}
            }
        }
    }
}

fn is_capped(count: u64) -> bool {
    count >= u64::from(CAP)
}
