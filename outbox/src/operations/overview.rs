//! [`Overview`]: the values of gauges. Its cost does not depend on the size of the tables.

use std::time::Duration;

use super::{
    Counts, DeliveryStatus, Operations, RecordStatus, Status,
    operations::ask,
    samples::{Samples, share},
};
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    store::{Database, Operator, Table},
};

/// Counts, blocked lanes and the lag; see [`Operations::overview`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overview {
    /// An unfinished status with fewer than 500 rows is exact. Finished statuses are exact if there are at
    /// most 1,024 records. Other counts are estimates from samples.
    pub counts: Counts,
    /// Lanes that a failed delivery blocks.
    pub blocked_by_failed: u64,
    /// Lanes that a retrying delivery blocks.
    pub blocked_by_retrying: u64,
    /// The time since the oldest pending record was published, on the database's clock.
    pub oldest_pending: Option<Duration>,
}

/// How many rows of each status are counted. A larger number is estimated.
const CAP: u32 = 500;

impl<Db: Database> Operations<'_, Db> {
    /// The values of the gauges of a dispatcher. Reads at most a few thousand rows, whatever the size of
    /// the tables. Takes a few milliseconds.
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
        ask!(self, Operation::Overview, overview())
    }
}

const PENDING: Status = Status::Record(RecordStatus::Pending);

impl<Db: Database> Operator<'_, Db> {
    async fn overview(&mut self) -> Result<Overview, sqlx::Error> {
        let capped = self.capped_counts(CAP).await?;
        let mut counts = Counts::default();
        capped.iter().for_each(|one| counts.add(&one.counted));
        counts.exact = true;
        let counted = counts;

        let oldest = if counted.pending > 0 {
            self.oldest_pending().await?
        } else {
            None
        };
        if let Some(all @ (_, newest)) = self.id_range(Table::Record).await? {
            self.estimate(&mut counts, Table::Record, all, |status| status != PENDING)
                .await?;
            // Pending records are the newest. Samples of the whole table would miss them.
            if let Some((_, first)) = oldest.filter(|_| is_capped(counted.pending)) {
                let all = (first, newest);
                self.estimate(&mut counts, Table::Record, all, |status| status == PENDING)
                    .await?;
            }
        }
        let deliveries = [counted.waiting, counted.retrying, counted.failed];
        if deliveries.into_iter().any(is_capped)
            && let Some(all) = self.id_range(Table::Delivery).await?
        {
            self.estimate(&mut counts, Table::Delivery, all, |_| true)
                .await?;
        }
        // Only the head of a lane can block and be retrying or failed. So blocking rows are lanes.
        let blocked_by = |status: DeliveryStatus, all| {
            let mut capped = capped.iter();
            let heads = capped.find(|one| one.counted.status == status.into());
            heads.map_or(0, |one| share(one.blocking, all, one.counted.count))
        };
        let age = oldest.map(|(age, _)| u64::try_from(age).unwrap_or(0));
        Ok(Overview {
            counts,
            blocked_by_failed: blocked_by(DeliveryStatus::Failed, counts.failed),
            blocked_by_retrying: blocked_by(DeliveryStatus::Retrying, counts.retrying),
            oldest_pending: age.map(Duration::from_micros),
        })
    }

    /// Estimates the wanted statuses from samples, if they are finished statuses or have at least [`CAP`]
    /// rows.
    async fn estimate(
        &mut self,
        counts: &mut Counts,
        table: Table,
        (lowest, highest): (i64, i64),
        is_wanted: fn(Status) -> bool,
    ) -> Result<(), sqlx::Error> {
        let samples = Samples::few(lowest, highest);
        counts.exact &= samples.is_exact();
        let mut within = self.statuses_within(table, &samples.ranges).await?;
        within.retain(|one| is_wanted(one.status));
        for one in within {
            use RecordStatus::{Completed, Discarded};
            let is_finished = matches!(one.status, Status::Record(Completed | Discarded));
            let count = counts.count_mut(one.status);
            if let Some(count) = count.filter(|count| is_finished || is_capped(**count)) {
                *count = samples.scaled(one.count).max(*count);
            }
        }
        Ok(())
    }
}

fn is_capped(count: u64) -> bool {
    count >= u64::from(CAP)
}
