//! [`Breakdown`]: what there is by event or error, without reading all of it.

use std::collections::BTreeMap;

use super::{
    Counts, DeliveryStatus, ErrorCount, EventCounts, Operations, RecordStatus, Status,
    filter::LARGEST_PAGE,
};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{Database, SAMPLE_END, SampleExtent, StatusCount, StatusSample, Table},
};

/// How much there is of each kind; see [`Operations::estimated_counts_by_event`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breakdown<T> {
    /// One for each kind.
    pub items: Vec<T>,
    /// Whether everything was counted. If not, something rare may be missing.
    pub exact: bool,
}

impl<Db: Database> Operations<'_, Db> {
    /// Like [`counts_by_event`](Self::counts_by_event), at a price that does not grow: of a status
    /// with more than 10,000, the oldest and the newest 5,000 stand for all of `of`, which
    /// [`estimated_counts`](Self::estimated_counts) or [`counts`](Self::counts) said.
    ///
    /// ```
    /// # async fn print(outbox: &outbox::Outbox<sqlx::Sqlite>) -> outbox::Result<()> {
    /// let operations = outbox.operations();
    /// let now = operations.estimated_counts().await?.counts;
    /// for event in operations.estimated_counts_by_event(&now).await?.items {
    ///     println!("{}: {} failed", event.event, event.failed);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn estimated_counts_by_event(&self, of: &Counts) -> Result<Breakdown<EventCounts>> {
        let operation = Operation::Count;
        let mut connection = self.connection(operation).await?;
        let parts = parts(of);
        if parts.is_empty() {
            return Ok(Breakdown {
                items: Vec::new(),
                exact: true,
            });
        }
        let counted = Db::events_of(&mut connection, self.names(), &parts).await;
        let mut events: BTreeMap<String, Counts> = BTreeMap::new();
        for mut one in scaled(counted.during(operation)?, of) {
            let event = one.event.take().unwrap_or_default();
            events.entry(event).or_default().add(&one);
        }
        Ok(Breakdown {
            items: events.into_iter().map(EventCounts::of).collect(),
            exact: parts.iter().all(|part| part.extent == SampleExtent::All),
        })
    }

    /// Like [`counts_by_error`](Self::counts_by_error), in the same way.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn estimated_counts_by_error(&self, of: &Counts) -> Result<Breakdown<ErrorCount>> {
        let operation = Operation::Count;
        let mut connection = self.connection(operation).await?;
        let extent = extent(of.failed);
        let errors = Db::errors_of(&mut connection, self.names(), extent, LARGEST_PAGE).await;
        let mut items = errors.during(operation)?;
        if extent == SampleExtent::Ends {
            let seen: u64 = items.iter().map(|error| error.count).sum();
            for error in &mut items {
                error.count = share(error.count, of.failed, seen);
            }
        }
        Ok(Breakdown {
            items,
            exact: extent == SampleExtent::All,
        })
    }
}

/// What is unfinished, and how much of it is looked at.
fn parts(of: &Counts) -> Vec<StatusSample> {
    let part = |table, status, count| {
        (count > 0).then_some(StatusSample {
            table,
            status,
            extent: extent(count),
        })
    };
    let of_record = |status: RecordStatus, count| part(Table::Record, status.as_str(), count);
    let of_delivery = |status: DeliveryStatus, count| part(Table::Delivery, status.as_str(), count);
    [
        of_record(RecordStatus::Pending, of.pending),
        of_record(RecordStatus::Scheduled, of.scheduled),
        of_record(RecordStatus::Unhandled, of.unhandled),
        of_delivery(DeliveryStatus::Waiting, of.waiting),
        of_delivery(DeliveryStatus::Retrying, of.retrying),
        of_delivery(DeliveryStatus::Failed, of.failed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn extent(count: u64) -> SampleExtent {
    match count > u64::from(SAMPLE_END) * 2 {
        true => SampleExtent::Ends,
        false => SampleExtent::All,
    }
}

/// What was seen of a status stands for all of it.
fn scaled(counted: Vec<StatusCount>, of: &Counts) -> Vec<StatusCount> {
    let mut seen = Counts::default();
    counted.iter().for_each(|one| seen.add(one));
    let scale = |mut one: StatusCount| {
        let all = of_status(of, one.status);
        if extent(all) == SampleExtent::Ends {
            one.count = share(one.count, all, of_status(&seen, one.status));
        }
        one
    };
    counted.into_iter().map(scale).collect()
}

fn of_status(counts: &Counts, status: Status) -> u64 {
    match status {
        Status::Record(RecordStatus::Pending) => counts.pending,
        Status::Record(RecordStatus::Scheduled) => counts.scheduled,
        Status::Record(RecordStatus::Unhandled) => counts.unhandled,
        Status::Delivery(DeliveryStatus::Waiting) => counts.waiting,
        Status::Delivery(DeliveryStatus::Retrying) => counts.retrying,
        Status::Delivery(DeliveryStatus::Failed) => counts.failed,
        Status::Record(_) | Status::Delivery(_) => 0,
    }
}

fn share(count: u64, all: u64, seen: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(all) / u128::from(seen.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(event: &str, status: impl Into<Status>, count: u64) -> StatusCount {
        StatusCount {
            status: status.into(),
            event: Some(event.to_owned()),
            count,
        }
    }

    #[test]
    fn what_was_seen_stands_for_all_of_its_status_and_no_other() {
        let of = Counts {
            pending: 7,
            failed: 200_000,
            ..Counts::default()
        };
        let seen = vec![
            counted("a", RecordStatus::Pending, 7),
            counted("a", DeliveryStatus::Failed, 7_500),
            counted("b", DeliveryStatus::Failed, 2_500),
        ];
        let counts: Vec<u64> = scaled(seen, &of).iter().map(|one| one.count).collect();
        assert_eq!(counts, [7, 150_000, 50_000]);
        let extents: Vec<(&str, SampleExtent)> =
            parts(&of).iter().map(|p| (p.status, p.extent)).collect();
        assert_eq!(
            extents,
            [
                ("pending", SampleExtent::All),
                ("failed", SampleExtent::Ends)
            ]
        );
    }
}
