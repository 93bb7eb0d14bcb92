//! [`Meters`]: what a running dispatcher counts.

use ::metrics::{Counter, Histogram};
use jiff::Timestamp;

use crate::outbox::error::Operation;
use crate::{
    registry::Registry,
    retry::Decision,
    runtime::{lane::Work, signals::Signals},
    store::{Batch, DeliveryRow},
};
use crate::{runtime::meters::handlers::OfHandler, telemetry::metrics::names};

/// Made when a dispatcher starts, with the recorder that is installed then; used by its loop only.
#[derive(Debug)]
pub(crate) struct Meters {
    handlers: Vec<OfHandler>,
    completions: Counter,
    batch_size: Histogram,
    late_commits: Counter,
    lease_losses: Counter,
    published: Counter,
    records: Counter,
    asked: Counter,
    leases: Counter,
    paused: Counter,
    timer: Counter,
}

impl Meters {
    pub(crate) fn new(registry: &Registry) -> Self {
        crate::telemetry::metrics::describe();
        let handlers = registry.entries().iter();
        let cause = |cause: &'static str| names::WAKE_UPS.counter([cause.into()]);
        Self {
            handlers: handlers.map(|entry| OfHandler::new(entry.id())).collect(),
            completions: names::COMPLETIONS.counter([]),
            batch_size: names::BATCH_SIZE.histogram([]),
            late_commits: names::LATE_COMMITS.counter([]),
            lease_losses: names::LEASE_LOSSES.counter([]),
            published: cause("published"),
            records: cause("records"),
            asked: cause("asked"),
            leases: cause("leases"),
            paused: cause("paused"),
            timer: cause("timer"),
        }
    }

    /// An invocation ended, of a record that is still ours.
    pub(crate) fn answered(&self, work: &Work, decision: &Decision, now: Timestamp) {
        if let Some(handler) = self.handlers.get(usize::from(work.handler)) {
            handler.answered(work, decision, now);
        }
    }

    /// A batch was written.
    pub(crate) fn wrote(&self, batch: &Batch) {
        let ended = |row: &&DeliveryRow| row.status == "completed";
        let done = batch.done.len() + batch.changed.iter().filter(ended).count();
        self.completions.increment(count(done));
        let size = batch.done.len() + batch.unhandled.len() + batch.split.len();
        self.batch_size.record(number(size + batch.changed.len()));
    }

    /// Records were found below what had been read.
    pub(crate) fn late(&self, records: usize) {
        self.late_commits.increment(count(records));
    }

    pub(crate) fn lost(&self, partitions: usize) {
        self.lease_losses.increment(count(partitions));
    }

    pub(crate) fn woken(&self, call: Signals) {
        for (is, counter) in [
            (call.soon || call.later, &self.published),
            (call.records, &self.records),
            (call.now, &self.asked),
            (call.leases, &self.leases),
            (call.paused, &self.paused),
        ] {
            counter.increment(u64::from(is));
        }
    }

    pub(crate) fn woken_by_timer(&self) {
        self.timer.increment(1);
    }
}

/// A statement of the dispatcher failed. Rare, and followed by a pause: the handle is not kept.
pub(crate) fn database_error(operation: Operation) {
    let counter = names::DATABASE_ERRORS.counter([operation.as_str().into()]);
    counter.increment(1);
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// As values are recorded; exact up to four thousand million.
pub(super) fn number(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}
