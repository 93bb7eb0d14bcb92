//! What the dispatcher writes: what became of the records that it read.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::{Fence, StatementSql};
use crate::record::DeliveryStatus;

/// What became of many records, written at once.
#[derive(Debug, Default)]
pub struct Batch {
    /// Records whose handlers all finished.
    pub(crate) completed: Vec<i64>,
    /// Records that nothing here handles.
    pub(crate) unhandled: Vec<i64>,
    /// Records that get a delivery for each handler that did not finish. Their rows are in
    /// `new_deliveries`; in the order in which their lanes will go on.
    pub(crate) split_records: Vec<i64>,
    pub(crate) new_deliveries: Vec<DeliveryRow>,
    /// Deliveries that changed, as they are to be.
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

    /// Nothing but finished records: one statement, no transaction.
    pub(crate) fn has_only_completed(&self) -> bool {
        self.unhandled.is_empty()
            && self.split_records.is_empty()
            && self.changed_deliveries.is_empty()
    }

    /// Keys in which something blocks once this is written, each with its partition.
    pub(crate) fn blocking(&self) -> impl Iterator<Item = (u16, &str)> {
        let rows = self.new_deliveries.iter().chain(&self.changed_deliveries);
        let blocking = rows.filter(|row| row.blocking);
        blocking.map(|row| (row.part, &*row.key))
    }

    /// After how long the first of its deliveries is due.
    pub(crate) fn first_due(&self) -> Option<Duration> {
        let rows = self.new_deliveries.iter().chain(&self.changed_deliveries);
        let first = rows.filter_map(|row| row.due_in).min()?;
        Some(Duration::from_micros(u64::try_from(first).unwrap_or(0)))
    }

    /// Moves what is due by that many microseconds, as far as the database's clock is from ours.
    pub(crate) fn shift(&mut self, micros: i64) {
        for row in self
            .new_deliveries
            .iter_mut()
            .chain(&mut self.changed_deliveries)
        {
            row.due_in = row.due_in.map(|due_in| due_in.saturating_add(micros));
        }
    }

    /// The new deliveries of these records, in their order.
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(crate) fn rows_of(&self, records: &BTreeSet<i64>) -> Vec<&DeliveryRow> {
        let rows = self.new_deliveries.iter();
        rows.filter(|row| records.contains(&row.record_id))
            .collect()
    }

    /// Whether a delivery has more failures now than are kept.
    pub(crate) fn has_old_failures(&self) -> bool {
        let mut failures = self.failures.iter();
        failures.any(|row| row.attempt > MAX_FAILURES_KEPT)
    }

    /// The records of deliveries that ended; each is done if no other of its deliveries is left.
    pub(crate) fn ended(&self) -> Vec<i64> {
        let ended = self
            .changed_deliveries
            .iter()
            .filter(|row| row.status == DeliveryStatus::Completed);
        let mut ids: Vec<i64> = ended.map(|row| row.record_id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// A delivery as it is to be. Written as JSON, one array for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DeliveryRow {
    pub(crate) record_id: i64,
    pub(crate) part: u16,
    pub(crate) key: String,
    pub(crate) handler: &'static str,
    #[serde(serialize_with = "as_stored")]
    pub(crate) status: DeliveryStatus,
    pub(crate) blocking: bool,
    /// The attempt that is next, or was the last.
    pub(crate) attempt: u32,
    pub(crate) failure_count: u32,
    /// Microseconds since 1970.
    pub(crate) first_failed_at: Option<i64>,
    /// Microseconds from the database's present; with `scheduled` only.
    pub(crate) due_in: Option<i64>,
    /// The attempt as it was read: whoever finds another one there has come too late.
    pub(crate) expected_attempt: u32,
    pub(crate) error: Option<String>,
    pub(crate) error_kind: Option<&'static str>,
    pub(crate) fingerprint: Option<String>,
}

fn as_stored<S: Serializer>(status: &DeliveryStatus, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.as_str())
}

/// One failed attempt, for the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FailureRow {
    pub(crate) record_id: i64,
    pub(crate) part: u16,
    pub(crate) handler: &'static str,
    pub(crate) attempt: u32,
    pub(crate) kind: &'static str,
    pub(crate) fingerprint: String,
    pub(crate) error: String,
}

/// What a handler's own transaction completes.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryCompletion<'a> {
    pub(crate) row: &'a DeliveryRow,
    /// There was a delivery when the handler started. Otherwise there may be one since.
    pub(crate) stored: bool,
    /// A finished record stays, as `completed`.
    pub(crate) keep: bool,
}

/// A handler that has a new id.
#[derive(Debug, Clone, Copy)]
pub struct HandlerRename<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

/// How many failures of one delivery are remembered; the oldest are forgotten.
pub(crate) const MAX_FAILURES_KEPT: u32 = 50;

/// Many rows as one JSON array.
pub(crate) fn json(rows: &(impl Serialize + ?Sized)) -> Result<String, sqlx::Error> {
    serde_json::to_string(rows).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// The statements that write. Each is conditional on the fence and on the row as it was read, so
/// that writing a batch again, or too late, changes nothing.
pub trait SettleSql: StatementSql {
    /// Writes a batch: all of it or nothing. `keep`: finished records stay, as `completed`.
    fn settle(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        fence: &Fence,
        batch: &Batch,
        keep: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Marks the transaction that a handler is given.
    fn mark_transaction(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// An error if it is not the marked transaction any more: some databases end one by
    /// themselves, as after a deadlock, and what the handler did after that was outside of it.
    fn check_mark(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Completes a record, or its delivery, inside a handler's own transaction. Whether this
    /// process still owned it and it was as it was read; if not, the transaction must not commit.
    fn complete_in_transaction(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        fence: &Fence,
        completion: DeliveryCompletion<'_>,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Deliveries of a handler that has a new id become the new one's.
    fn rename_handler(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        fence: &Fence,
        rename: HandlerRename<'_>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// At most `limit` unhandled records of this event become pending again. How many did.
    fn requeue_unhandled(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        fence: &Fence,
        event: &str,
        limit: i64,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Prepares a connection that is kept; `settles`: for writing what became of records. Nothing
    /// that a transaction of somebody else must not find, behind a proxy that shares sessions.
    fn configure(
        connection: &mut Self::Connection,
        settles: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}
