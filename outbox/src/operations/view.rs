//! What there is to see. Times serialize as RFC 3339 text, durations as seconds.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use serde::{Serialize, Serializer};
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

/// How much there is, by what it waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Records to be handled as soon as possible.
    pub pending: u64,
    /// Records that are due at a later time.
    pub scheduled: u64,
    /// Records that no handler takes. They wait for a process that has one.
    pub unhandled: u64,
    /// Deliveries behind another one of their lane.
    pub waiting: u64,
    /// Deliveries before their next attempt.
    pub retrying: u64,
    /// Deliveries that failed for good.
    pub failed: u64,
    /// Records that every handler is done with, as far as they are kept.
    pub completed: u64,
    /// Records that were given up, as far as they are kept.
    pub discarded: u64,
    /// Whether everything was counted. If not, `completed` and `discarded` are estimates; in an
    /// [`Overview`](super::Overview) the others may be estimates too.
    pub exact: bool,
}

/// How much of one event is not finished.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EventCounts {
    /// The stored name of the event.
    pub event: String,
    /// Records to be handled as soon as possible.
    pub pending: u64,
    /// Records that are due at a later time.
    pub scheduled: u64,
    /// Records that no handler takes. They wait for a process that has one.
    pub unhandled: u64,
    /// Deliveries behind another one of their lane.
    pub waiting: u64,
    /// Deliveries before their next attempt.
    pub retrying: u64,
    /// Deliveries that failed for good.
    pub failed: u64,
}

/// Failed deliveries of one handler whose last errors have the same fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ErrorCount {
    /// What these errors have in common, with the version of the rule that says so; for
    /// [`Filter::fingerprint`](super::Filter::fingerprint).
    pub fingerprint: String,
    /// The handler that failed.
    pub handler: String,
    /// What kind of failure the newest is.
    pub kind: String,
    /// The newest error.
    pub error: String,
    /// How many deliveries.
    pub count: u64,
    /// The first record that failed so.
    pub oldest_record_id: i64,
    /// The last record that failed so.
    pub newest_record_id: i64,
}

/// How much there is of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breakdown<T> {
    /// One for each kind.
    pub items: Vec<T>,
    /// Whether everything was counted. If not, the counts are estimates, and something rare may be
    /// missing.
    pub exact: bool,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// In the order that was asked for.
    pub items: Vec<Listed>,
    /// Where the next page starts; none if this is the last one.
    pub next: Option<Cursor>,
}

/// A record in a list, or one of its deliveries. Without its payload: see
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
    /// What the record waits for.
    pub status: RecordStatus,
    /// When it was published.
    pub created_at: Timestamp,
    /// From when on it is to be handled, if its publisher gave a time.
    pub due_at: Option<Timestamp>,
    /// When it was completed or discarded.
    pub completed_at: Option<Timestamp>,
    /// The delivery, where deliveries are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
}

/// A record for one handler that did not finish with it at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Delivery {
    #[serde(skip)]
    pub(crate) id: i64,
    /// The id of the handler.
    pub handler: String,
    /// What it waits for.
    pub status: DeliveryStatus,
    /// Whether later records of its lane wait behind it.
    pub blocking: bool,
    /// The attempt that is next, or was the last.
    pub attempt: u32,
    /// How many failures used up a retry.
    pub failure_count: u32,
    /// When the first of them was.
    pub first_failed_at: Option<Timestamp>,
    /// When the next attempt is due.
    pub due_at: Option<Timestamp>,
    /// When it was completed or discarded.
    pub finished_at: Option<Timestamp>,
    /// What kind of failure the last one was.
    pub kind: Option<String>,
    /// What the last error has in common with others of its kind.
    pub fingerprint: Option<String>,
    /// The last error.
    pub error: Option<String>,
}

/// Everything that is stored of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspected {
    /// The record with its payload.
    pub record: Record,
    /// What it waits for.
    pub status: RecordStatus,
    /// From when on it is to be handled, if its publisher gave a time.
    pub due_at: Option<Timestamp>,
    /// When it was completed or discarded.
    pub completed_at: Option<Timestamp>,
    /// One for each handler that did not finish with it at once, in the order of their lanes.
    pub deliveries: Vec<Delivery>,
    /// What failed, by handler and attempt. The oldest failures of a delivery are forgotten.
    pub failures: Vec<Failure>,
}

/// One attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// The id of the handler.
    pub handler: String,
    /// Which attempt it was; 1 is the first.
    pub attempt: u32,
    /// When it failed.
    pub failed_at: Timestamp,
    /// What kind of failure it was.
    pub kind: String,
    /// What the error has in common with others of its kind.
    pub fingerprint: String,
    /// The error.
    pub error: String,
}

/// A process that runs a dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Instance {
    /// Drawn when it started.
    pub id: Uuid,
    /// When that was.
    pub started_at: Timestamp,
    /// How long it keeps what it owns if nothing more is heard of it; none if that time is over.
    #[serde(rename = "expires_in_seconds", serialize_with = "seconds")]
    pub expires_in: Option<Duration>,
    /// How many partitions of the keys it owns.
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
    /// The record at its head, which the others wait for.
    pub record_id: i64,
    /// What the head waits for.
    pub status: DeliveryStatus,
    /// The head's attempt that is next, or was the last.
    pub attempt: u32,
    /// The head's last error.
    pub error: Option<String>,
    /// How long until the head is tried again; zero if it should have been already.
    #[serde(rename = "due_in_seconds", serialize_with = "seconds")]
    pub due_in: Option<Duration>,
    /// How many deliveries wait behind the head.
    pub waiting: u64,
}

pub(super) fn seconds<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(to)
}
