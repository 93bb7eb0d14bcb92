//! `FetchRequest` → `FetchPlan` → `Fetched` → `FetchSummary`: the data of one fetch, from the
//! request of the timers to the result.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::{
    record::Partition,
    registry::{HandlerIx, route::Router},
    runtime::fetch::{BlockingKeys, PagePlan},
    store::{DueDeliveryName, FetchedDelivery, FetchedRecord, InMemory, LaneName, RunnableOrder},
};

/// The request of the timers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FetchRequest {
    /// Read pending records of all partitions.
    pub(crate) poll: Option<PollReason>,
    /// Look for scheduled records and deliveries that have become due.
    pub(crate) due: bool,
    /// Read every owned partition from id 0 again.
    pub(crate) sweep: bool,
    /// Microseconds added to the database's clock; zero outside of tests.
    pub(crate) clock_offset: i64,
}

/// Why pending records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollReason {
    /// Records were published, or may have been.
    Signalled,
    /// The poll interval is over. Probably nothing was published, so one cheap probe comes first.
    Timer,
}

/// The plan of one fetch. The engine makes it, the fetcher runs it, the engine applies the result.
#[derive(Debug)]
pub(crate) struct FetchPlan {
    pub(crate) partitions: Vec<Partition>,
    /// Handlers that may run here now.
    pub(crate) handlers: Vec<&'static str>,
    /// Microseconds added to the database's clock.
    pub(crate) clock_offset: i64,
    /// Lanes whose parked deliveries are to be loaded.
    pub(crate) load: Vec<LaneName>,
    pub(crate) due: Option<DuePlan>,
    pub(crate) pending: Option<PendingPlan>,
    /// Read pending records from id 0, and the blocking keys. Only with `pending`.
    pub(crate) sweep: bool,
    pub(crate) find_runnable: Option<FindRunnable>,
    pub(crate) blocking_keys: Arc<BlockingKeys>,
    pub(crate) router: Arc<Router>,
}

/// Due rows are found again until their results are written. Those in memory must not hide the
/// rest.
#[derive(Debug, Default)]
pub(crate) struct DuePlan {
    /// How many new records and deliveries have room in memory.
    pub(crate) free: usize,
    /// Deliveries that are in memory: their rows are not read again.
    pub(crate) deliveries: HashSet<(i64, HandlerIx)>,
    /// Records that are in memory.
    pub(crate) records: HashSet<i64>,
}

/// A page of pending records of each partition that may have some.
#[derive(Debug)]
pub(crate) struct PendingPlan {
    pub(crate) pages: PagePlan,
    /// Records that are in memory, and are not read again.
    pub(crate) in_memory: Vec<InMemory>,
    /// The highest id that was read before.
    pub(crate) highest_seen: i64,
    /// No signal was raised, and memory is empty: probably nothing is pending.
    pub(crate) probe_first: bool,
}

/// A search for runnable lanes that are not in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindRunnable {
    /// All handlers that may run here now, or those whose lanes were evicted.
    pub(crate) handlers: Vec<HandlerIx>,
    /// `EveryLane` for all handlers, which have few such lanes. `OldestFirst` for evicted lanes.
    pub(crate) order: RunnableOrder,
    pub(crate) limit: usize,
}

/// The rows of one fetch.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) loaded: Vec<(LaneName, Vec<FetchedDelivery>)>,
    pub(crate) due_records: Vec<FetchedRecord>,
    pub(crate) due_deliveries: Vec<FetchedDelivery>,
    /// Microseconds until the next record or delivery is due; zero or negative if it is overdue.
    pub(crate) next_due: Option<i64>,
    pub(crate) pending: Vec<FetchedRecord>,
    /// The lanes of the records above that have a blocking delivery: handlers by key.
    pub(crate) blocked: HashMap<String, HashSet<String>>,
    pub(crate) runnable: Vec<LaneName>,
    /// With a sweep: the blocking keys.
    pub(crate) blocking_keys: Option<BlockingKeys>,
    /// How many pending records are below the watermark of their partition.
    pub(crate) late_found: usize,
    /// An open transaction may still commit such a record.
    pub(crate) expects_late: bool,
}

/// How many rows of a fetch were not in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FetchSummary {
    /// Records and deliveries that were not in memory.
    pub(crate) new: usize,
    /// How many of those had become due.
    pub(crate) due: usize,
}

impl DuePlan {
    /// How many names of due deliveries to read.
    pub(crate) fn delivery_limit(&self) -> usize {
        self.free.saturating_add(self.deliveries.len())
    }

    /// How many due records to read.
    pub(crate) fn record_limit(&self) -> usize {
        self.free.saturating_add(self.records.len())
    }

    /// The ids of the due deliveries that are not in memory, as many as there is room for.
    pub(crate) fn new_deliveries(&self, due: &[DueDeliveryName], router: &Router) -> Vec<i64> {
        let is_in_memory = |due: &&DueDeliveryName| {
            let handler = router.by_id(&due.handler);
            handler.is_some_and(|handler| self.deliveries.contains(&(due.record_id, handler)))
        };
        let new = due.iter().filter(|due| !is_in_memory(due));
        new.map(|due| due.id).take(self.free).collect()
    }

    /// The due records that are not in memory, as many as there is room for after `deliveries` new
    /// deliveries.
    pub(crate) fn new_records(
        &self,
        mut due: Vec<FetchedRecord>,
        deliveries: usize,
    ) -> Vec<FetchedRecord> {
        due.retain(|row| !self.records.contains(&row.record.id));
        due.truncate(self.free.saturating_sub(deliveries));
        due
    }
}

impl Fetched {
    /// The lanes of all fetched records in which a delivery may block.
    pub(crate) fn lanes_to_check(&self, plan: &FetchPlan) -> Vec<LaneName> {
        let blocking_keys = self.blocking_keys.as_ref().unwrap_or(&plan.blocking_keys);
        let mut seen = HashSet::new();
        let mut lanes = Vec::new();
        for FetchedRecord { partition, record } in self.pending.iter().chain(&self.due_records) {
            if !blocking_keys.may_block(*partition, &record.key) {
                continue;
            }
            for &handler in plan.router.handlers_of(&record.event).iter() {
                if seen.insert((&record.key, handler)) {
                    lanes.push(LaneName {
                        partition: *partition,
                        key: record.key.clone(),
                        handler: plan.router.id_of(handler).to_owned(),
                    });
                }
            }
        }
        lanes
    }

    /// These lanes have a blocking delivery.
    pub(crate) fn add_blocked(&mut self, lanes: Vec<LaneName>) {
        for lane in lanes {
            let handlers = self.blocked.entry(lane.key).or_default();
            handlers.insert(lane.handler);
        }
    }
}

/// The rows of each of these lanes, which may be none.
pub(crate) fn group_by_lane(
    lanes: &[LaneName],
    rows: Vec<FetchedDelivery>,
) -> Vec<(LaneName, Vec<FetchedDelivery>)> {
    let mut groups: HashMap<LaneName, Vec<FetchedDelivery>> = HashMap::new();
    for row in rows {
        let lane = LaneName {
            partition: row.record.partition,
            key: row.record.record.key.clone(),
            handler: row.handler.clone(),
        };
        groups.entry(lane).or_default().push(row);
    }
    let rows_of = |lane: &LaneName| (lane.clone(), groups.remove(lane).unwrap_or_default());
    lanes.iter().map(rows_of).collect()
}
