//! The JSON of what several commands print. Times are RFC 3339, durations are seconds.

use std::time::Duration;

use jiff::Timestamp;
use outbox::operations::{
    BlockedLane, Counts, Delivery, ErrorCount, EventCounts, Instance, Listed,
};
use serde::Serialize;

/// How much there is. `exact` is false where `completed` and `discarded` are estimates.
#[derive(Debug, Serialize)]
pub(crate) struct CountsShape {
    pending: u64,
    scheduled: u64,
    unhandled: u64,
    waiting: u64,
    retrying: u64,
    failed: u64,
    completed: u64,
    discarded: u64,
    exact: bool,
}

impl CountsShape {
    pub(crate) fn of(counts: &Counts, exact: bool) -> Self {
        Self {
            pending: counts.pending,
            scheduled: counts.scheduled,
            unhandled: counts.unhandled,
            waiting: counts.waiting,
            retrying: counts.retrying,
            failed: counts.failed,
            completed: counts.completed,
            discarded: counts.discarded,
            exact,
        }
    }
}

/// How much of one event is unfinished.
#[derive(Debug, Serialize)]
pub(crate) struct EventShape<'a> {
    event: &'a str,
    pending: u64,
    scheduled: u64,
    unhandled: u64,
    waiting: u64,
    retrying: u64,
    failed: u64,
}

impl<'a> From<&'a EventCounts> for EventShape<'a> {
    fn from(counts: &'a EventCounts) -> Self {
        Self {
            event: &counts.event,
            pending: counts.pending,
            scheduled: counts.scheduled,
            unhandled: counts.unhandled,
            waiting: counts.waiting,
            retrying: counts.retrying,
            failed: counts.failed,
        }
    }
}

/// Failed deliveries with one cause.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorShape<'a> {
    fingerprint: &'a str,
    handler: &'a str,
    kind: &'a str,
    error: &'a str,
    count: u64,
    oldest_record_id: i64,
    newest_record_id: i64,
}

impl<'a> From<&'a ErrorCount> for ErrorShape<'a> {
    fn from(count: &'a ErrorCount) -> Self {
        Self {
            fingerprint: &count.fingerprint,
            handler: &count.handler,
            kind: &count.kind,
            error: &count.error,
            count: count.count,
            oldest_record_id: count.oldest_record_id,
            newest_record_id: count.newest_record_id,
        }
    }
}

/// A record, or one of its deliveries.
#[derive(Debug, Serialize)]
pub(crate) struct ListedShape<'a> {
    record_id: i64,
    event_id: String,
    event: &'a str,
    key: &'a str,
    status: &'static str,
    created_at: Timestamp,
    due_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<DeliveryShape<'a>>,
}

impl<'a> From<&'a Listed> for ListedShape<'a> {
    fn from(listed: &'a Listed) -> Self {
        Self {
            record_id: listed.record_id,
            event_id: listed.event_id.to_string(),
            event: &listed.event,
            key: &listed.key,
            status: listed.status.as_str(),
            created_at: listed.created_at,
            due_at: listed.due_at,
            completed_at: listed.completed_at,
            delivery: listed.delivery.as_ref().map(Into::into),
        }
    }
}

/// A record for one handler that did not finish with it at once.
#[derive(Debug, Serialize)]
pub(crate) struct DeliveryShape<'a> {
    handler: &'a str,
    status: &'static str,
    blocking: bool,
    attempt: u32,
    failure_count: u32,
    first_failed_at: Option<Timestamp>,
    due_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    kind: Option<&'a str>,
    fingerprint: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> From<&'a Delivery> for DeliveryShape<'a> {
    fn from(delivery: &'a Delivery) -> Self {
        Self {
            handler: &delivery.handler,
            status: delivery.status.as_str(),
            blocking: delivery.blocking,
            attempt: delivery.attempt,
            failure_count: delivery.failure_count,
            first_failed_at: delivery.first_failed_at,
            due_at: delivery.due_at,
            finished_at: delivery.finished_at,
            kind: delivery.kind.as_deref(),
            fingerprint: delivery.fingerprint.as_deref(),
            error: delivery.error.as_deref(),
        }
    }
}

/// A lane and what is at its head.
#[derive(Debug, Serialize)]
pub(crate) struct LaneShape<'a> {
    key: &'a str,
    handler: &'a str,
    record_id: i64,
    status: &'static str,
    attempt: u32,
    error: Option<&'a str>,
    due_in_seconds: Option<f64>,
    waiting: u64,
}

impl<'a> From<&'a BlockedLane> for LaneShape<'a> {
    fn from(lane: &'a BlockedLane) -> Self {
        Self {
            key: &lane.key,
            handler: &lane.handler,
            record_id: lane.record_id,
            status: lane.status.as_str(),
            attempt: lane.attempt,
            error: lane.error.as_deref(),
            due_in_seconds: lane.due_in.map(|time| time.as_secs_f64()),
            waiting: lane.waiting,
        }
    }
}

/// A process that runs a dispatcher.
#[derive(Debug, Serialize)]
pub(crate) struct InstanceShape {
    id: String,
    started_at: Timestamp,
    expires_in_seconds: Option<f64>,
    partitions: u64,
}

impl From<&Instance> for InstanceShape {
    fn from(instance: &Instance) -> Self {
        Self {
            id: instance.id.to_string(),
            started_at: instance.started_at,
            expires_in_seconds: instance.expires_in.as_ref().map(Duration::as_secs_f64),
            partitions: instance.partitions,
        }
    }
}
