//! The results of operations. Times serialize as RFC 3339 text, durations as seconds.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use super::{Cursor, DeliveryStatus, RecordStatus};
use crate::record::Record;

/// The status of a record or of one of its deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// Of a record.
    Record(RecordStatus),
    /// Of a delivery.
    Delivery(DeliveryStatus),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(status) => status.fmt(f),
            Self::Delivery(status) => status.fmt(f),
        }
    }
}

impl From<RecordStatus> for Status {
    fn from(status: RecordStatus) -> Self {
        Self::Record(status)
    }
}

impl From<DeliveryStatus> for Status {
    fn from(status: DeliveryStatus) -> Self {
        Self::Delivery(status)
    }
}

/// The number of records and deliveries of each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Records to be handled as soon as possible.
    pub pending: u64,
    /// Records that are due at a later time.
    pub scheduled: u64,
    /// Records that no handler takes. They wait for a process that has a handler for them.
    pub unhandled: u64,
    /// Deliveries that wait for another delivery of their lane.
    pub waiting: u64,
    /// Deliveries that wait for the time of their next attempt.
    pub retrying: u64,
    /// Deliveries that failed permanently.
    pub failed: u64,
    /// Records that every handler completed, as long as they are kept.
    pub completed: u64,
    /// Records that were discarded, as long as they are kept.
    pub discarded: u64,
    /// Whether all rows were counted. If not, `completed` and `discarded` are estimates. In an
    /// [`Overview`](super::Overview), the other counts may be estimates too.
    pub exact: bool,
}

/// The unfinished records and deliveries of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EventCounts {
    /// The stored name of the event.
    pub event: String,
    /// Records to be handled as soon as possible.
    pub pending: u64,
    /// Records that are due at a later time.
    pub scheduled: u64,
    /// Records that no handler takes. They wait for a process that has a handler for them.
    pub unhandled: u64,
    /// Deliveries that wait for another delivery of their lane.
    pub waiting: u64,
    /// Deliveries that wait for the time of their next attempt.
    pub retrying: u64,
    /// Deliveries that failed permanently.
    pub failed: u64,
    /// When the newest of the failed deliveries failed.
    pub newest_failed_at: Option<Timestamp>,
}

/// Failed deliveries of one handler whose last errors have the same fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ErrorCount {
    /// The fingerprint of these errors, with the version of its rule. Use it with
    /// [`Filter::fingerprint`](super::Filter::fingerprint).
    pub fingerprint: String,
    /// The handler that failed.
    pub handler: String,
    /// The kind of the failure of the newest record.
    pub kind: String,
    /// The error of the newest record.
    pub error: String,
    /// The number of deliveries.
    pub count: u64,
    /// The first record with this error.
    pub oldest_record_id: i64,
    /// The last record with this error.
    pub newest_record_id: i64,
    /// When the first of these deliveries failed.
    pub oldest_failed_at: Option<Timestamp>,
    /// When the last of these deliveries failed.
    pub newest_failed_at: Option<Timestamp>,
}

/// Counts by event or by error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breakdown<T> {
    /// One item for each event or error.
    pub items: Vec<T>,
    /// Whether all rows were counted. If not, the counts are estimates, and rare events or errors may be
    /// missing.
    pub exact: bool,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The items, in the order of the [`Paging`](super::Paging).
    pub items: Vec<Listed>,
    /// The start of the next page. `None` on the last page.
    pub next: Option<Cursor>,
}

/// A record in a list, or one of its deliveries. For its payload, see
/// [`inspect`](super::Operations::inspect).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// The id of the record.
    pub record_id: i64,
    /// The record's id for other systems.
    pub event_id: Uuid,
    /// The stored name of the event.
    pub event: String,
    /// Records of one key are handled in order.
    pub key: String,
    /// The status of the record.
    pub status: RecordStatus,
    /// When it was published.
    pub created_at: Timestamp,
    /// The time from which on it may be handled, if its publisher gave one.
    pub due_at: Option<Timestamp>,
    /// When it was completed or discarded.
    pub completed_at: Option<Timestamp>,
    /// The delivery, where deliveries are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
}

/// The row of one handler that did not finish a record at its first attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Delivery {
    /// The position in its lane. A delivery that is restored without an id becomes the last of its lane.
    #[serde(default)]
    pub id: i64,
    /// The id of the handler.
    pub handler: String,
    /// The status.
    pub status: DeliveryStatus,
    /// Whether later records of its lane must wait for it.
    pub blocking: bool,
    /// The number of the next attempt, or of the last attempt if no other follows.
    pub attempt: u32,
    /// The number of failures that used up a retry.
    pub failure_count: u32,
    /// The time of the first failure of any kind. `max_elapsed` counts from there.
    pub first_failed_at: Option<Timestamp>,
    /// When its last attempt failed. A replay keeps it.
    pub failed_at: Option<Timestamp>,
    /// When the next attempt is due.
    pub due_at: Option<Timestamp>,
    /// When it was completed or discarded.
    pub finished_at: Option<Timestamp>,
    /// The kind of the last failure.
    pub kind: Option<String>,
    /// The fingerprint of the last error.
    pub fingerprint: Option<String>,
    /// The last error.
    pub error: Option<String>,
}

/// One record with its deliveries and failures. In JSON it is one object, which
/// [`restore`](super::Operations::restore) puts back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspected {
    /// The record with its payload.
    pub record: Record,
    /// The status.
    pub status: RecordStatus,
    /// The time from which on it may be handled, if its publisher gave one.
    pub due_at: Option<Timestamp>,
    /// When it was completed or discarded.
    pub completed_at: Option<Timestamp>,
    /// The dedup key of its publisher.
    pub dedup_key: Option<String>,
    /// One delivery for each handler that did not finish the record at its first attempt, in the order of
    /// their ids.
    pub deliveries: Vec<Delivery>,
    /// The failed attempts, by handler and attempt. Only the last 50 of each delivery are kept.
    pub failures: Vec<Failure>,
}

/// One attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Failure {
    /// The id of the handler.
    pub handler: String,
    /// The number of the attempt; 1 is the first.
    pub attempt: u32,
    /// When it failed.
    pub failed_at: Timestamp,
    /// The kind of the failure.
    pub kind: String,
    /// The fingerprint of the error.
    pub fingerprint: String,
    /// The error.
    pub error: String,
}

/// A process that runs a dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Instance {
    /// A random id that the process chose at its start.
    pub id: Uuid,
    /// When it started.
    pub started_at: Timestamp,
    /// The time until it counts as dead if it does not renew its leases. `None` if that time has passed.
    #[serde(rename = "expires_in_seconds", serialize_with = "seconds")]
    pub expires_in: Option<Duration>,
    /// The number of partitions that it owns.
    pub partitions: u64,
}

/// A lane in which later records wait: one key for one handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlockedLane {
    /// The key.
    pub key: String,
    /// The id of the handler.
    pub handler: String,
    /// The record at the head of the lane, which the other records wait for.
    pub record_id: i64,
    /// The status of the head.
    pub status: DeliveryStatus,
    /// The number of the head's next attempt, or of its last attempt if no other follows.
    pub attempt: u32,
    /// The head's last error.
    pub error: Option<String>,
    /// The time until the next attempt of the head; zero if it is overdue.
    #[serde(rename = "due_in_seconds", serialize_with = "seconds")]
    pub due_in: Option<Duration>,
    /// The number of deliveries behind the head.
    pub waiting: u64,
}

pub(super) fn seconds<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(to)
}
