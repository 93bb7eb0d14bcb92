//! [`Gauges`]: values of a moment.

use std::time::Duration;

use ::metrics::Gauge;

use crate::operations::Overview;
use crate::{runtime::meters::meters::number, telemetry::metrics::names};

/// Made when a dispatcher starts. Gauges of the whole database are the same in every process, but
/// for the moment at which they were taken: dashboards show the highest.
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

const STATUSES: [&str; 8] = [
    "pending",
    "scheduled",
    "unhandled",
    "waiting",
    "retrying",
    "failed",
    "completed",
    "discarded",
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
            records: STATUSES.map(|status| names::RECORDS.gauge([status.into()])),
            oldest: names::OLDEST_PENDING_AGE.gauge([]),
            blocked_by_failed: cause("failed"),
            blocked_by_retrying: cause("retrying"),
        }
    }

    /// What a claim saw.
    pub(crate) fn set_ownership(&self, owned: usize, unowned: usize, instances: usize) {
        self.owned.set(number(owned));
        self.unowned.set(number(unowned));
        self.instances.set(number(instances));
    }

    /// What is in the memory of this process.
    pub(crate) fn set_memory(&self, records: usize, running: usize) {
        self.in_memory.set(number(records));
        self.running.set(number(running));
    }

    /// What is in the database.
    pub(crate) fn set_overview(&self, overview: &Overview) {
        let counts = &overview.counts;
        let values = [
            counts.pending,
            counts.scheduled,
            counts.unhandled,
            counts.waiting,
            counts.retrying,
            counts.failed,
            counts.completed,
            counts.discarded,
        ];
        for (gauge, value) in self.records.iter().zip(values) {
            gauge.set(large(value));
        }
        let age = overview.oldest_pending.map_or(0.0, |age| age.as_secs_f64());
        self.oldest.set(age);
        self.blocked_by_failed
            .set(large(overview.blocked_by_failed));
        self.blocked_by_retrying
            .set(large(overview.blocked_by_retrying));
    }

    /// The dispatcher has ended. Zero does not change the highest of several processes.
    pub(crate) fn clear(&self) {
        self.set_ownership(0, 0, 0);
        self.set_memory(0, 0);
        self.set_overview(&Overview::default());
    }
}

/// As recorders take values. Exact up to 2^52, which no table reaches.
fn large(n: u64) -> f64 {
    Duration::from_secs(n).as_secs_f64()
}
