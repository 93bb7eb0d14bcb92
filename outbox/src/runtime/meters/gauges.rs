//! [`Gauges`]: values that are true at one moment.

use ::metrics::Gauge;

use super::meters::number;
use crate::{
    operations::{Counts, Overview},
    telemetry::metrics::names,
};

/// Made when a dispatcher starts. Gauges of the whole database differ between processes only by the
/// time of the sample: dashboards show the highest value.
#[derive(Debug)]
pub(crate) struct Gauges {
    owned: Gauge,
    unowned: Gauge,
    instances: Gauge,
    in_memory: Gauge,
    running: Gauge,
    /// In the order of [`STATUSES`].
    records: [Gauge; STATUSES.len()],
    oldest: Gauge,
    blocked_by_failed: Gauge,
    blocked_by_retrying: Gauge,
}

type CountOf = fn(&Counts) -> u64;

/// The values of the label `status`, each with its count.
const STATUSES: [(&str, CountOf); 8] = [
    ("pending", |counts| counts.pending),
    ("scheduled", |counts| counts.scheduled),
    ("unhandled", |counts| counts.unhandled),
    ("waiting", |counts| counts.waiting),
    ("retrying", |counts| counts.retrying),
    ("failed", |counts| counts.failed),
    ("completed", |counts| counts.completed),
    ("discarded", |counts| counts.discarded),
];

impl Gauges {
    pub(crate) fn new() -> Self {
        let cause = |cause: &'static str| names::BLOCKED_LANES.gauge([cause.into()]);
        Self {
            owned: names::PARTITIONS_OWNED.gauge([]),
            unowned: names::PARTITIONS_UNOWNED.gauge([]),
            instances: names::INSTANCES.gauge([]),
            in_memory: names::IN_MEMORY.gauge([]),
            running: names::RUNNING.gauge([]),
            records: STATUSES.map(|(status, _)| names::RECORDS.gauge([status.into()])),
            oldest: names::OLDEST_PENDING_AGE.gauge([]),
            blocked_by_failed: cause("failed"),
            blocked_by_retrying: cause("retrying"),
        }
    }

    /// The partitions and instances that a claim saw.
    pub(crate) fn set_ownership(&self, owned: usize, unowned: usize, instances: usize) {
        self.owned.set(number(owned));
        self.unowned.set(number(unowned));
        self.instances.set(number(instances));
    }

    /// The records and running invocations in the memory of this process.
    pub(crate) fn set_memory(&self, records: usize, running: usize) {
        self.in_memory.set(number(records));
        self.running.set(number(running));
    }

    /// The counts of the database.
    pub(crate) fn set_overview(&self, overview: &Overview) {
        for (gauge, (_, count)) in self.records.iter().zip(STATUSES) {
            gauge.set(number(count(&overview.counts)));
        }
        let age = overview.oldest_pending.map_or(0.0, |age| age.as_secs_f64());
        self.oldest.set(age);
        self.blocked_by_failed
            .set(number(overview.blocked_by_failed));
        self.blocked_by_retrying
            .set(number(overview.blocked_by_retrying));
    }

    /// The dispatcher has ended. A zero does not change the highest value of several processes.
    pub(crate) fn clear(&self) {
        self.set_ownership(0, 0, 0);
        self.set_memory(0, 0);
        self.set_overview(&Overview::default());
    }
}
