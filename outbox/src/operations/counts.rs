//! Counts of records and deliveries by status, by event and by error, [exact or
//! estimated](Precision).

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::{
    Breakdown, Counts, DeliveryStatus, ErrorCount, EventCounts, Operations, RecordStatus, Status,
    filter::LARGEST_PAGE,
    operations::ask,
    samples::{Samples, share},
};
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    store::{Database, OPEN, Operator, SAMPLE_END, SampleExtent, StatusCount, StatusSample, Table},
};

/// How many rows a count reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// All rows, which takes around a second per million records.
    Exact,
    /// A number of rows that does not grow with the tables: cheap enough for a call every few seconds.
    /// With few rows, the count is exact too.
    Estimated,
}

impl Counts {
    fn of(counted: &[StatusCount]) -> Self {
        let mut counts = Self::default();
        counted.iter().for_each(|one| counts.add(one));
        counts
    }

    pub(super) fn add(&mut self, one: &StatusCount) {
        if let Some(count) = self.count_mut(one.status) {
            *count += one.count;
        }
    }

    /// The count of a status. Split records have none, because their deliveries are counted. Finished
    /// deliveries have none, because their record is counted.
    pub(super) fn count_mut(&mut self, status: Status) -> Option<&mut u64> {
        Some(match status {
            Status::Record(RecordStatus::Pending) => &mut self.pending,
            Status::Record(RecordStatus::Scheduled) => &mut self.scheduled,
            Status::Record(RecordStatus::Unhandled) => &mut self.unhandled,
            Status::Record(RecordStatus::Completed) => &mut self.completed,
            Status::Record(RecordStatus::Discarded) => &mut self.discarded,
            Status::Delivery(DeliveryStatus::Waiting) => &mut self.waiting,
            Status::Delivery(DeliveryStatus::Retrying) => &mut self.retrying,
            Status::Delivery(DeliveryStatus::Failed) => &mut self.failed,
            Status::Record(RecordStatus::Split)
            | Status::Delivery(DeliveryStatus::Completed | DeliveryStatus::Discarded) => {
                return None;
            }
        })
    }

    fn get(mut self, status: Status) -> u64 {
        self.count_mut(status).map_or(0, |count| *count)
    }
}

impl EventCounts {
    fn of((event, (counts, newest_failed_at)): (String, (Counts, Option<Timestamp>))) -> Self {
        Self {
            event,
            newest_failed_at,
            pending: counts.pending,
            scheduled: counts.scheduled,
            unhandled: counts.unhandled,
            waiting: counts.waiting,
            retrying: counts.retrying,
            failed: counts.failed,
        }
    }

    fn total(&self) -> u64 {
        let records = self.pending + self.scheduled + self.unhandled;
        records + self.waiting + self.retrying + self.failed
    }
}

impl<Db: Database> Operations<'_, Db> {
    /// The number of records and deliveries of each status. [Estimated](Precision::Estimated):
    /// unfinished statuses are counted in small indexes; finished records are estimated from samples.
    ///
    /// ```
    /// # use outbox::operations::Precision;
    /// # async fn print(outbox: &outbox::Outbox<sqlx::Sqlite>) -> outbox::Result<()> {
    /// let now = outbox.operations().counts(Precision::Estimated).await?;
    /// let about = if now.exact { "" } else { "about " };
    /// println!("{} failed, {about}{} completed", now.failed, now.completed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn counts(&self, precision: Precision) -> Result<Counts> {
        ask!(self, Operation::Count, status_counts(precision))
    }

    /// The unfinished records and deliveries of each event, the event with the most of them first: records
    /// that are pending, scheduled or unhandled, and deliveries that are waiting, retrying or failed.
    /// Events without any are left out.
    ///
    /// [Estimated](Precision::Estimated): a status with more than 10,000 rows is estimated from its
    /// oldest and newest 5,000 rows. Failed deliveries are oldest and newest by the time of their failure.
    ///
    /// ```
    /// # use outbox::operations::Precision;
    /// # async fn print(outbox: &outbox::Outbox<sqlx::Sqlite>) -> outbox::Result<()> {
    /// for event in outbox.operations().counts_by_event(Precision::Estimated).await?.items {
    ///     println!("{}: {} failed", event.event, event.failed);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn counts_by_event(&self, precision: Precision) -> Result<Breakdown<EventCounts>> {
        ask!(self, Operation::Count, event_counts(precision))
    }

    /// Failed deliveries by the fingerprint of their error, the most frequent first; the first 1,000.
    ///
    /// [Estimated](Precision::Estimated): more than 10,000 failed deliveries are estimated from the 5,000
    /// that failed first and the 5,000 that failed last.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn counts_by_error(&self, precision: Precision) -> Result<Breakdown<ErrorCount>> {
        ask!(self, Operation::Count, error_counts(precision))
    }

    /// The time since the oldest pending record was published, on the database's clock. It is the lag of
    /// the handlers. Cheap enough for a call every few seconds.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn oldest_pending_age(&self) -> Result<Option<Duration>> {
        let oldest = ask!(self, Operation::Overview, oldest_pending())?;
        Ok(oldest.map(|(micros, _)| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
    }

    /// The id of the newest stored record; zero if there is none. It grows with each published record.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn newest_record_id(&self) -> Result<i64> {
        let ids = ask!(self, Operation::Count, id_range(Table::Record))?;
        Ok(ids.map_or(0, |(_, newest)| newest))
    }
}

impl<Db: Database> Operator<'_, Db> {
    async fn status_counts(&mut self, precision: Precision) -> sqlx::Result<Counts> {
        let counted = match precision {
            Precision::Exact => self.counts().await?,
            Precision::Estimated => self.open_counts(&OPEN).await?,
        };
        let mut counts = Counts::of(&counted);
        counts.exact = true;
        if precision == Precision::Exact {
            return Ok(counts);
        }
        let Some((lowest, newest)) = self.id_range(Table::Record).await? else {
            return Ok(counts);
        };
        let samples = Samples::many(lowest, newest);
        let within = self.statuses_within(Table::Record, &samples.ranges);
        for mut one in within.await? {
            // Unfinished statuses were counted above.
            if let Status::Record(RecordStatus::Completed | RecordStatus::Discarded) = one.status {
                one.count = samples.scaled(one.count);
                counts.add(&one);
            }
        }
        counts.exact = samples.is_exact();
        Ok(counts)
    }

    async fn event_counts(&mut self, precision: Precision) -> sqlx::Result<Breakdown<EventCounts>> {
        let (samples, totals) = match precision {
            Precision::Exact => {
                let extent = SampleExtent::Unlimited;
                let samples = OPEN.map(|status| StatusSample { status, extent });
                (samples.to_vec(), Counts::default())
            }
            Precision::Estimated => {
                let totals = Counts::of(&self.open_counts(&OPEN).await?);
                (samples_of(totals), totals)
            }
        };
        let mut events: BTreeMap<String, (Counts, Option<Timestamp>)> = BTreeMap::new();
        if !samples.is_empty() {
            for mut one in scaled(self.events_of(&samples).await?, totals) {
                let event = one.event.take().unwrap_or_default();
                let (counts, newest_failed_at) = events.entry(event).or_default();
                counts.add(&one);
                *newest_failed_at = one.newest_failed_at.max(*newest_failed_at);
            }
        }
        let is_sampled = |sample: &StatusSample| sample.extent == SampleExtent::Ends;
        let mut items: Vec<EventCounts> = events.into_iter().map(EventCounts::of).collect();
        // Stable: events with the same number stay in the order of their names.
        items.sort_by_key(|event| Reverse(event.total()));
        Ok(Breakdown {
            items,
            exact: !samples.iter().any(is_sampled),
        })
    }

    async fn error_counts(&mut self, precision: Precision) -> sqlx::Result<Breakdown<ErrorCount>> {
        let (extent, total) = match precision {
            Precision::Exact => (SampleExtent::Unlimited, 0),
            Precision::Estimated => {
                let failed = Status::Delivery(DeliveryStatus::Failed);
                let total = Counts::of(&self.open_counts(&[failed]).await?).failed;
                (extent(total), total)
            }
        };
        let mut items = self.errors_of(extent, LARGEST_PAGE).await?;
        let exact = extent != SampleExtent::Ends;
        if !exact {
            let seen = items.iter().map(|error| error.count).sum();
            for error in &mut items {
                error.count = share(error.count, total, seen);
            }
        }
        Ok(Breakdown { items, exact })
    }
}

/// The samples to read of unfinished statuses.
fn samples_of(totals: Counts) -> Vec<StatusSample> {
    let sample = |status| {
        let total = totals.get(status);
        let extent = extent(total);
        (total > 0).then_some(StatusSample { status, extent })
    };
    OPEN.into_iter().filter_map(sample).collect()
}

fn extent(count: u64) -> SampleExtent {
    if count > u64::from(SAMPLE_END) * 2 {
        SampleExtent::Ends
    } else {
        SampleExtent::All
    }
}

/// Scales the counts of statuses of which only the ends were read.
fn scaled(mut counted: Vec<StatusCount>, totals: Counts) -> Vec<StatusCount> {
    let seen = Counts::of(&counted);
    for one in &mut counted {
        let total = totals.get(one.status);
        if extent(total) == SampleExtent::Ends {
            one.count = share(one.count, total, seen.get(one.status));
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(event: &str, status: impl Into<Status>, count: u64) -> StatusCount {
        StatusCount {
            status: status.into(),
            event: Some(event.to_owned()),
            count,
            newest_failed_at: None,
        }
    }

    #[test]
    fn a_sample_is_scaled_to_the_total_of_its_status() {
        let totals = Counts {
            pending: 7,
            failed: 200_000,
            ..Counts::default()
        };
        let seen = vec![
            counted("a", RecordStatus::Pending, 7),
            counted("a", DeliveryStatus::Failed, 7_500),
            counted("b", DeliveryStatus::Failed, 2_500),
        ];
        let samples = samples_of(totals);
        let scaled = scaled(seen, totals);
        let counts: Vec<u64> = scaled.iter().map(|one| one.count).collect();
        assert_eq!(counts, [7, 150_000, 50_000]);
        let read: Vec<_> = samples.iter().map(|one| (one.status, one.extent)).collect();
        assert_eq!(
            read,
            [
                (RecordStatus::Pending.into(), SampleExtent::All),
                (DeliveryStatus::Failed.into(), SampleExtent::Ends)
            ]
        );
    }
}
