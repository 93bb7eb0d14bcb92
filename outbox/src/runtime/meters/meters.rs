//! [`Meters`]: what a running dispatcher counts.

use ::metrics::{Counter, Histogram};
use jiff::Timestamp;

use crate::outbox::error::Operation;
use crate::{
    record::DeliveryStatus,
    registry::{PerHandler, Registry},
    runtime::{
        lane::{AttemptEnd, Work},
        signals::{Signal, Signals},
    },
    store::{Batch, DeliveryRow},
};
use crate::{runtime::meters::handlers::HandlerMeters, telemetry::metrics::names};

/// Made when a dispatcher starts, with the recorder that is installed then. Only the event loop uses
/// it.
#[derive(Debug)]
pub(crate) struct Meters {
    handlers: PerHandler<HandlerMeters>,
    completions: Counter,
    batch_size: Histogram,
    late_commits: Counter,
    lease_losses: Counter,
    published: Counter,
    peer_published: Counter,
    requested: Counter,
    ownership: Counter,
    pause: Counter,
    timer: Counter,
}

impl Meters {
    pub(crate) fn new(registry: &Registry) -> Self {
        crate::telemetry::metrics::describe();
        let cause = |cause: &'static str| names::WAKE_UPS.counter([cause.into()]);
        Self {
            handlers: registry.per_handler(|entry| HandlerMeters::new(entry.id())),
            completions: names::COMPLETIONS.counter([]),
            batch_size: names::BATCH_SIZE.histogram([]),
            late_commits: names::LATE_COMMITS.counter([]),
            lease_losses: names::LEASE_LOSSES.counter([]),
            published: cause("published"),
            peer_published: cause("peer_published"),
            requested: cause("requested"),
            ownership: cause("ownership"),
            pause: cause("pause"),
            timer: cause("timer"),
        }
    }

    /// An invocation ended, of a record that this process still owns.
    pub(crate) fn finished(&self, work: &Work, end: &AttemptEnd, now: Timestamp) {
        self.handlers[work.handler].finished(work, end, now);
    }

    /// A batch was written.
    pub(crate) fn written(&self, batch: &Batch) {
        let ended = |row: &&DeliveryRow| row.status == DeliveryStatus::Completed;
        let done = batch.completed.len() + batch.changed_deliveries.iter().filter(ended).count();
        self.completions.increment(count(done));
        let size = batch.completed.len() + batch.unhandled.len() + batch.split_records.len();
        self.batch_size
            .record(number(size + batch.changed_deliveries.len()));
    }

    /// Records were found below what had been read.
    pub(crate) fn late_found(&self, records: usize) {
        self.late_commits.increment(count(records));
    }

    pub(crate) fn leases_lost(&self, partitions: usize) {
        self.lease_losses.increment(count(partitions));
    }

    pub(crate) fn woken(&self, raised: Signals) {
        let has_published = raised.has(Signal::Published) || raised.has(Signal::PublishedForLater);
        for (is_raised, counter) in [
            (has_published, &self.published),
            (raised.has(Signal::PeerPublished), &self.peer_published),
            (raised.has(Signal::Requested), &self.requested),
            (raised.has(Signal::OwnershipChanged), &self.ownership),
            (raised.has(Signal::PauseChanged), &self.pause),
        ] {
            counter.increment(u64::from(is_raised));
        }
    }

    pub(crate) fn woken_by_timer(&self) {
        self.timer.increment(1);
    }
}

/// A statement of the dispatcher failed. That is rare, so the handle is not kept.
pub(crate) fn database_error(operation: Operation) {
    let counter = names::DATABASE_ERRORS.counter([operation.as_str().into()]);
    counter.increment(1);
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// As recorders take values. Exact up to 2^32.
pub(super) fn number(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}
