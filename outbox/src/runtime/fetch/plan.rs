//! `FetchRequest` → `FetchPlan` → `Fetched` → `FetchSummary`: one fetch, from the timers' wish to what
//! came of it. Plain data.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::{
    registry::{HandlerIx, route::Router},
    runtime::fetch::{BlockingKeys, PagePlan},
    store::{DueDeliveryName, FetchedDelivery, FetchedRecord, InMemory, LaneName},
};

/// What the timers ask for.
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
    /// Something was published, or may have been.
    Signalled,
    /// The poll interval is over. Nothing says that there is anything, so one cheap probe comes first.
    Timer,
}

/// What one fetch reads. The engine makes it, the fetcher runs it, the engine applies the result.
#[derive(Debug)]
pub(crate) struct FetchPlan {
    pub(crate) partitions: Vec<u16>,
    /// Handlers that may run here now.
    pub(crate) handlers: Vec<&'static str>,
    /// Microseconds added to the database's clock.
    pub(crate) clock_offset: i64,
    /// Lanes whose parked deliveries are to be loaded.
    pub(crate) load: Vec<LaneName>,
    pub(crate) due: Option<DuePlan>,
    pub(crate) pending: Option<PendingPlan>,
    /// Read pending records from id 0, and the keys in which something blocks. Only with `pending`.
    pub(crate) sweep: bool,
    pub(crate) find_runnable: FindRunnable,
    pub(crate) blocking_keys: Arc<BlockingKeys>,
    pub(crate) router: Arc<Router>,
}

/// What is due is found again until it is written: what is in memory must not hide the rest.
#[derive(Debug, Default)]
pub(crate) struct DuePlan {
    /// How many new records and deliveries find room.
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
    /// Records that are in memory: not to be read again.
    pub(crate) in_memory: Vec<InMemory>,
    /// The highest id that was seen before.
    pub(crate) highest_seen: i64,
    /// Nothing says that there is anything, and nothing is in memory.
    pub(crate) probe_first: bool,
}

/// Whether to search for lanes that could run and are not in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FindRunnable {
    No,
    /// A walk through everything that blocks.
    OfAllHandlers {
        limit: usize,
    },
    /// The oldest lanes of handlers whose lanes were evicted.
    Refill {
        handlers: Vec<HandlerIx>,
        limit: usize,
    },
}

/// What one fetch brought.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) loaded: Vec<(LaneName, Vec<FetchedDelivery>)>,
    pub(crate) due_records: Vec<FetchedRecord>,
    pub(crate) due_deliveries: Vec<FetchedDelivery>,
    /// Microseconds until the next record or delivery is due.
    pub(crate) next_due: Option<i64>,
    pub(crate) pending: Vec<FetchedRecord>,
    /// Of the lanes of all records above, those in which something blocks: key, then handlers.
    pub(crate) blocked: HashMap<String, HashSet<String>>,
    pub(crate) runnable: Vec<LaneName>,
    /// With a sweep: the keys in which something blocks.
    pub(crate) blocking_keys: Option<BlockingKeys>,
    /// How many pending records have ids below those that had been read of their partition.
    pub(crate) late_found: usize,
    /// An open transaction may still bring such a record.
    pub(crate) expects_late: bool,
}

/// What came of a fetch, for the timers and the meters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FetchSummary {
    /// Records and deliveries that were not in memory.
    pub(crate) new: usize,
    /// Of those, the ones that had become due.
    pub(crate) due: usize,
    /// The fetch looked for what is due, so `next_due` says something.
    pub(crate) looked_for_due: bool,
    /// Microseconds until the next record or delivery is due; none or less if it is overdue.
    pub(crate) next_due: Option<i64>,
    /// Records with ids below those that had been read of their partition before.
    pub(crate) late_found: usize,
    /// An open transaction may still bring such a record.
    pub(crate) expects_late: bool,
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

    /// The ids of the due deliveries that are not in memory, as many as find room.
    pub(crate) fn new_deliveries(&self, due: &[DueDeliveryName], router: &Router) -> Vec<i64> {
        let is_known = |due: &&DueDeliveryName| {
            let handler = router.by_id(&due.handler);
            handler.is_some_and(|handler| self.deliveries.contains(&(due.record_id, handler)))
        };
        let new = due.iter().filter(|due| !is_known(due));
        new.map(|due| due.id).take(self.free).collect()
    }

    /// The due records that are not in memory, as many as find room beside `deliveries` new ones.
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
    /// The lanes of all records that were read, where something may block.
    pub(crate) fn lanes_to_check(&self, plan: &FetchPlan) -> Vec<LaneName> {
        let blocking_keys = self.blocking_keys.as_ref().unwrap_or(&plan.blocking_keys);
        let mut seen = HashSet::new();
        let mut lanes = Vec::new();
        for FetchedRecord { part, record } in self.pending.iter().chain(&self.due_records) {
            if !blocking_keys.may_block(*part, &record.key) {
                continue;
            }
            for &handler in plan.router.handlers_of(&record.event).iter() {
                if seen.insert((&record.key, handler)) {
                    lanes.push(LaneName {
                        part: *part,
                        key: record.key.clone(),
                        handler: plan.router.id_of(handler).to_owned(),
                    });
                }
            }
        }
        lanes
    }

    /// Something blocks in these lanes.
    pub(crate) fn add_blocked(&mut self, lanes: Vec<LaneName>) {
        for lane in lanes {
            let handlers = self.blocked.entry(lane.key).or_default();
            handlers.insert(lane.handler);
        }
    }
}

/// The rows of each lane that was asked for, also if there are none.
pub(crate) fn group_by_lane(
    lanes: &[LaneName],
    rows: Vec<FetchedDelivery>,
) -> Vec<(LaneName, Vec<FetchedDelivery>)> {
    let mut groups: HashMap<LaneName, Vec<FetchedDelivery>> = HashMap::new();
    for row in rows {
        let lane = LaneName {
            part: row.fetched.part,
            key: row.fetched.record.key.clone(),
            handler: row.handler.clone(),
        };
        groups.entry(lane).or_default().push(row);
    }
    let rows_of = |lane: &LaneName| (lane.clone(), groups.remove(lane).unwrap_or_default());
    lanes.iter().map(rows_of).collect()
}
