//! [`Batch`]: the changes of records and deliveries that the dispatcher writes.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::record::{DeliveryStatus, Partition};

/// Everything that one transaction of the writer writes.
#[derive(Debug, Default)]
pub struct Batch {
    /// Records that every handler completed.
    pub(crate) completed: Vec<i64>,
    /// Records that no handler of this process takes.
    pub(crate) unhandled: Vec<i64>,
    /// Records that get a delivery for each handler that has not finished. The rows are in
    /// `new_deliveries`, in the order of their lanes.
    pub(crate) split_records: Vec<i64>,
    pub(crate) new_deliveries: Vec<DeliveryRow>,
    /// Existing deliveries with their new values.
    pub(crate) changed_deliveries: Vec<DeliveryRow>,
    pub(crate) failures: Vec<FailureRow>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.completed.is_empty()
            && self.unhandled.is_empty()
            && self.split_records.is_empty()
            && self.changed_deliveries.is_empty()
    }

    /// Whether the batch only completes records. One statement then writes it, without a transaction.
    pub(crate) fn has_only_completions(&self) -> bool {
        self.unhandled.is_empty()
            && self.split_records.is_empty()
            && self.changed_deliveries.is_empty()
    }

    /// The keys that have a blocking delivery once this batch is written, with their partitions.
    pub(crate) fn blocking_keys(&self) -> impl Iterator<Item = (Partition, &str)> {
        let rows = self.new_deliveries.iter().chain(&self.changed_deliveries);
        let blocking = rows.filter(|row| row.blocking);
        blocking.map(|row| (row.partition, &*row.key))
    }

    /// The time until the first delivery of the batch is due.
    pub(crate) fn first_due(&self) -> Option<Duration> {
        let rows = self.new_deliveries.iter().chain(&self.changed_deliveries);
        let first = rows.filter_map(|row| row.due_in).min()?;
        Some(Duration::from_micros(u64::try_from(first).unwrap_or(0)))
    }

    /// Moves every due time by the offset between the test's clock and the database's, in
    /// microseconds.
    pub(crate) fn shift_due(&mut self, micros: i64) {
        for row in self
            .new_deliveries
            .iter_mut()
            .chain(&mut self.changed_deliveries)
        {
            row.due_in = row.due_in.map(|due_in| due_in.saturating_add(micros));
        }
    }

    /// The new deliveries of these records. The ids must be sorted.
    pub(super) fn rows_of(&self, records: &[i64]) -> Vec<&DeliveryRow> {
        let rows = self.new_deliveries.iter();
        rows.filter(|row| records.binary_search(&row.record_id).is_ok())
            .collect()
    }

    /// Whether a delivery has more than [`MAX_FAILURES_KEPT`] failures.
    pub(super) fn has_old_failures(&self) -> bool {
        let mut failures = self.failures.iter();
        failures.any(|row| row.attempt > MAX_FAILURES_KEPT)
    }

    /// The records of completed deliveries. A record is completed with its last open delivery.
    pub(crate) fn records_to_finish(&self) -> Vec<i64> {
        let completed = self
            .changed_deliveries
            .iter()
            .filter(|row| row.status == DeliveryStatus::Completed);
        let mut ids = in_order(completed.map(|row| row.record_id));
        ids.dedup();
        ids
    }
}

/// Sorts ids. All batches lock rows in this order, so that two of them cannot deadlock.
pub(super) fn in_order(ids: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut ids: Vec<i64> = ids.into_iter().collect();
    ids.sort_unstable();
    ids
}

/// The new values of a delivery. All rows of a batch are sent as one JSON array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DeliveryRow {
    pub(crate) record_id: i64,
    #[serde(rename = "part")]
    pub(crate) partition: Partition,
    pub(crate) key: String,
    pub(crate) handler: &'static str,
    #[serde(serialize_with = "as_stored")]
    pub(crate) status: DeliveryStatus,
    pub(crate) blocking: bool,
    /// The number of the next attempt, or of the last attempt if no other follows.
    pub(crate) attempt: u32,
    pub(crate) failure_count: u32,
    /// Microseconds since 1970.
    pub(crate) first_failed_at: Option<i64>,
    /// Microseconds from the database's current time, if the status is `retrying`.
    pub(crate) due_in: Option<i64>,
    /// The attempt in the row as the fetcher read it. If the row has another attempt by now, the
    /// change is too late and is not written.
    pub(crate) expected_attempt: u32,
    pub(crate) error: Option<String>,
    pub(crate) error_kind: Option<&'static str>,
    pub(crate) fingerprint: Option<String>,
}

fn as_stored<S: Serializer>(status: &DeliveryStatus, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.as_str())
}

/// One failed attempt: a row of the failure history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FailureRow {
    pub(crate) record_id: i64,
    #[serde(rename = "part")]
    pub(crate) partition: Partition,
    pub(crate) handler: &'static str,
    pub(crate) attempt: u32,
    pub(crate) kind: &'static str,
    pub(crate) fingerprint: String,
    pub(crate) error: String,
}

/// How many failures of one delivery are kept. Older ones are deleted.
pub(super) const MAX_FAILURES_KEPT: u32 = 50;

/// Serializes many rows as one JSON array.
pub(super) fn rows_as_json(rows: &(impl Serialize + ?Sized)) -> Result<String, sqlx::Error> {
    serde_json::to_string(rows).map_err(|error| sqlx::Error::Encode(error.into()))
}
