//! [`Overview`]: what gauges show. Its cost does not depend on the size of the tables.

use std::time::Duration;

use super::{Counts, DeliveryStatus, Operations, RecordStatus, Status, samples::Samples};
use crate::{
    outbox::{Result, error::While as _},
    store::{CappedCount, Database, Operator, Table},
};

/// How much there is, and for how long; see [`Operations::overview`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overview {
    /// Exact where there are few. Of what is unfinished, that is below 500 of a status; of what
    /// is finished, if there are no more than 1,024 records. Above that, estimates from samples.
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
    /// What the gauges of a dispatcher show. Reads a few thousand rows at most,
    /// however many records there are and whatever they wait for: a few milliseconds.
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
        let doing = "taking a look at all records";
        let mut connection = self.connection(doing).await?;
        Look::take(&mut self.operator(&mut connection), self.partitions)
            .await
            .doing(doing)
    }
}

/// An overview that is being read.
struct Look {
    seen: Overview,
}

impl Look {
    async fn take<Db: Database>(
        operator: &mut Operator<'_, Db>,
        partitions: u16,
    ) -> Result<Overview, sqlx::Error> {
        let mut look = Self {
            seen: Overview::default(),
        };
        let capped = operator.capped_counts(CAP).await?;
        for one in &capped {
            look.seen.counts.add(&one.counted);
        }
        look.seen.counts.exact = true;
        let counts = look.seen.counts;

        let mut oldest = None;
        if counts.pending > 0 {
            oldest = operator.oldest_pending(partitions).await?;
            let age = oldest.map(|(age, _)| u64::try_from(age).unwrap_or(0));
            look.seen.oldest_pending = age.map(Duration::from_micros);
        }
        if let Some((lowest, newest)) = operator.id_range(Table::Record).await? {
            let all = (lowest, newest);
            look.sample(operator, Table::Record, all, |status| {
                !matches!(status, Status::Record(RecordStatus::Pending))
            })
            .await?;
            // Pending records are the newest. Samples of the whole table would miss them.
            if let Some((_, first)) = oldest.filter(|_| is_capped(counts.pending)) {
                let all = (first, newest);
                look.sample(operator, Table::Record, all, |status| {
                    matches!(status, Status::Record(RecordStatus::Pending))
                })
                .await?;
            }
        }
        let deliveries = [counts.waiting, counts.retrying, counts.failed];
        if deliveries.into_iter().any(is_capped)
            && let Some(all) = operator.id_range(Table::Delivery).await?
        {
            look.sample(operator, Table::Delivery, all, |_| true)
                .await?;
        }
        look.blocked(&capped);
        Ok(look.seen)
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
        self.seen.counts.exact &= samples.is_exact();
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
        let count = self.seen.counts.place(status)?;
        (finished || is_capped(*count)).then_some(count)
    }

    /// Counts lanes by their heads: only the head of a lane is retrying or failed and blocks.
    fn blocked(&mut self, capped: &[CappedCount]) {
        for one in capped {
            let share = |all: u64| match one.counted.count {
                0 => 0,
                counted => {
                    let blocked = u128::from(one.blocking) * u128::from(all) / u128::from(counted);
                    u64::try_from(blocked).unwrap_or(u64::MAX)
                }
            };
            let counts = &self.seen.counts;
            match one.counted.status {
                Status::Delivery(DeliveryStatus::Failed) => {
                    self.seen.blocked_by_failed = share(counts.failed);
                }
                Status::Delivery(DeliveryStatus::Retrying) => {
                    self.seen.blocked_by_retrying = share(counts.retrying);
                }
                Status::Record(_) | Status::Delivery(_) => {}
            }
        }
    }
}

fn is_capped(count: u64) -> bool {
    count >= u64::from(CAP)
}
