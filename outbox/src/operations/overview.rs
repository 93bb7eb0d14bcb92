//! [`Overview`]: what gauges show, at a price that does not depend on how much there is.

use std::time::Duration;

use super::{Counts, DeliveryStatus, Operations, RecordStatus, Status, estimate::Samples};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{CappedCount, Database, Table, TableNames},
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

/// So many of each status are counted; whether there are more is estimated.
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
        let operation = Operation::Overview;
        let mut connection = self.connection(operation).await?;
        Look::take::<Db>(&mut connection, self.names(), self.partitions)
            .await
            .during(operation)
    }
}

/// A look that is being taken.
struct Look {
    seen: Overview,
}

impl Look {
    async fn take<Db: Database>(
        connection: &mut Db::Connection,
        names: &TableNames,
        partitions: u16,
    ) -> Result<Overview, sqlx::Error> {
        let mut look = Self {
            seen: Overview::default(),
        };
        let capped = Db::capped_counts(connection, names, CAP).await?;
        for one in &capped {
            look.seen.counts.add(&one.counted);
        }
        let counts = look.seen.counts;

        let mut oldest = None;
        if counts.pending > 0 {
            oldest = Db::oldest_pending(connection, names, partitions).await?;
            let age = oldest.map(|(age, _)| u64::try_from(age).unwrap_or(0));
            look.seen.oldest_pending = age.map(Duration::from_micros);
        }
        if let Some((lowest, newest)) = Db::ids(connection, names, Table::Record).await? {
            let all = (lowest, newest);
            look.sample::<Db>(connection, names, Table::Record, all, |status| {
                !matches!(status, Status::Record(RecordStatus::Pending))
            })
            .await?;
            // Pending ones are the newest: looked for among all they would be missed.
            if let Some((_, first)) = oldest.filter(|_| is_capped(counts.pending)) {
                let all = (first, newest);
                look.sample::<Db>(connection, names, Table::Record, all, |status| {
                    matches!(status, Status::Record(RecordStatus::Pending))
                })
                .await?;
            }
        }
        let deliveries = [counts.waiting, counts.retrying, counts.failed];
        if deliveries.into_iter().any(is_capped)
            && let Some(all) = Db::ids(connection, names, Table::Delivery).await?
        {
            look.sample::<Db>(connection, names, Table::Delivery, all, |_| true)
                .await?;
        }
        look.blocked(&capped);
        Ok(look.seen)
    }

    /// Estimates what was not counted to its end.
    async fn sample<Db: Database>(
        &mut self,
        connection: &mut Db::Connection,
        names: &TableNames,
        table: Table,
        (lowest, highest): (i64, i64),
        wanted: impl Fn(Status) -> bool,
    ) -> Result<(), sqlx::Error> {
        let samples = Samples::few(lowest, highest);
        let within = Db::statuses_within(connection, names, table, &samples.ranges).await?;
        for one in within {
            let estimate = samples.scaled(one.count);
            if let Some(count) = self.place(one.status).filter(|_| wanted(one.status)) {
                *count = estimate.max(*count);
            }
        }
        Ok(())
    }

    /// Where an estimate of this status belongs; nowhere if it was counted.
    fn place(&mut self, status: Status) -> Option<&mut u64> {
        let counts = &mut self.seen.counts;
        let (count, finished) = match status {
            Status::Record(RecordStatus::Pending) => (&mut counts.pending, false),
            Status::Record(RecordStatus::Scheduled) => (&mut counts.scheduled, false),
            Status::Record(RecordStatus::Unhandled) => (&mut counts.unhandled, false),
            Status::Record(RecordStatus::Completed) => (&mut counts.completed, true),
            Status::Record(RecordStatus::Discarded) => (&mut counts.discarded, true),
            Status::Delivery(DeliveryStatus::Waiting) => (&mut counts.waiting, false),
            Status::Delivery(DeliveryStatus::Retrying) => (&mut counts.retrying, false),
            Status::Delivery(DeliveryStatus::Failed) => (&mut counts.failed, false),
            Status::Record(RecordStatus::Split)
            | Status::Delivery(DeliveryStatus::Completed | DeliveryStatus::Discarded) => {
                return None;
            }
        };
        (finished || is_capped(*count)).then_some(count)
    }

    /// Only the first of a lane fails, and it holds the lane up: lanes are counted by those.
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
