//! [`Meters`]: the counters of a running dispatcher.

use std::time::Duration;

use ::metrics::{Counter, Histogram};
use jiff::Timestamp;

use super::handlers::HandlerMeters;
use crate::{
    outbox::error::Operation,
    record::DeliveryStatus,
    registry::{PerHandler, Registry},
    runtime::{
        lane::{AttemptEnd, Work},
        signals::{Signal, Signals},
    },
    store::{Batch, DeliveryRow},
    telemetry::metrics::{describe, names},
};

/// The causes of wake-ups as labels, each with its signals.
const WAKE_UPS: [(&str, &[Signal]); 5] = [
    ("published", &[Signal::Published, Signal::PublishedForLater]),
    ("peer_published", &[Signal::PeerPublished]),
    ("requested", &[Signal::Requested, Signal::Restored]),
    ("ownership", &[Signal::OwnershipChanged]),
    ("pause", &[Signal::PauseChanged]),
];

/// Made when a dispatcher starts, with the recorder that is installed then. The event loop owns it.
#[derive(Debug)]
pub(crate) struct Meters {
    handlers: PerHandler<HandlerMeters>,
    completions: Counter,
    batch_size: Histogram,
    late_commits: Counter,
    lease_losses: Counter,
    /// In the order of [`WAKE_UPS`].
    wake_ups: [Counter; WAKE_UPS.len()],
    wake_ups_by_timer: Counter,
}

impl Meters {
    pub(crate) fn new(registry: &Registry) -> Self {
        describe();
        Self {
            handlers: registry.per_handler(|entry| HandlerMeters::new(entry.id())),
            completions: names::COMPLETIONS.counter([]),
            batch_size: names::BATCH_SIZE.histogram([]),
            late_commits: names::LATE_COMMITS.counter([]),
            lease_losses: names::LEASE_LOSSES.counter([]),
            wake_ups: WAKE_UPS.map(|(cause, _)| names::WAKE_UPS.counter([cause.into()])),
            wake_ups_by_timer: names::WAKE_UPS.counter(["timer".into()]),
        }
    }

    /// Counts an invocation that ended, of a record that this process still owns.
    pub(crate) fn finished(&self, work: &Work, end: &AttemptEnd, now: Timestamp) {
        self.handlers[work.handler].finished(work, end, now);
    }

    /// A batch was written.
    pub(crate) fn written(&self, batch: &Batch) {
        let is_completed = |row: &&DeliveryRow| row.status == DeliveryStatus::Completed;
        let deliveries = batch.changed_deliveries.iter().filter(is_completed);
        let completions = batch.completed.len() + deliveries.count();
        self.completions.increment(count(completions));
        let records = batch.completed.len() + batch.unhandled.len() + batch.split_records.len();
        let size = records + batch.changed_deliveries.len();
        self.batch_size.record(number(size));
    }

    /// Records were found below the watermark of their partition.
    pub(crate) fn late_found(&self, records: usize) {
        self.late_commits.increment(count(records));
    }

    pub(crate) fn leases_lost(&self, partitions: usize) {
        self.lease_losses.increment(count(partitions));
    }

    pub(crate) fn woken(&self, raised: Signals) {
        for ((_, signals), counter) in WAKE_UPS.iter().zip(&self.wake_ups) {
            let is_raised = signals.iter().any(|signal| raised.has(*signal));
            counter.increment(u64::from(is_raised));
        }
    }

    pub(crate) fn woken_by_timer(&self) {
        self.wake_ups_by_timer.increment(1);
    }
}

/// Counts a statement of the dispatcher that failed. That is rare, so the handle is not kept.
pub(crate) fn database_error(operation: Operation) {
    let counter = names::DATABASE_ERRORS.counter([operation.as_str().into()]);
    counter.increment(1);
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// A value as recorders take it. Exact up to 2^52, which no table reaches.
pub(super) fn number(n: impl TryInto<u64>) -> f64 {
    let n = n.try_into().unwrap_or(u64::MAX);
    Duration::from_secs(n).as_secs_f64()
}
