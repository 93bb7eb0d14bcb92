//! Plans fetches, and admits their rows to lanes.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::Engine;
use crate::{
    record::Partition,
    registry::HandlerIx,
    runtime::fetch::{
        DuePlan, FetchPlan, FetchRequest, FetchSummary, Fetched, FindRunnable, PendingPlan,
        PollReason,
    },
    runtime::lane::Target,
    store::{FetchedRecord, LaneName, RunnableOrder},
};

/// The largest number of pending records in one fetch. It is high enough to make the cost of a
/// statement small, and low enough that handlers run while the next records are read.
const RECORDS_PER_FETCH: usize = 4096;
/// A sweep searches for runnable lanes after at most four pages: enough to fill the memory.
const PAGES_BEFORE_SEARCH: u8 = 4;
/// The largest number of parked lanes that one fetch loads.
const LANES_PER_FETCH: usize = 64;

impl Engine {
    /// Plans the next fetch, if there is something to read.
    pub(crate) fn plan_fetch(&mut self, request: FetchRequest) -> Option<FetchPlan> {
        let partitions = self.watermarks.partitions();
        if request.sweep {
            self.needs_sweep = true;
            self.pages_before_search = Some(PAGES_BEFORE_SEARCH);
        }
        if request.poll.is_some() || self.needs_sweep {
            self.watermarks.mark_unread();
        }
        let pending = self.plan_pending(request.poll);
        // Without room for pages, the sweep is made later.
        let sweep = self.needs_sweep && pending.is_some();
        let find_runnable = self.plan_search(pending.is_some());
        let due = request.due && !self.is_full();
        let is_needed = pending.is_some() || due || find_runnable.is_some();
        if !(is_needed || self.lanes.has_lanes_to_load()) || partitions.is_empty() {
            return None;
        }
        self.needs_sweep &= !sweep;
        let load = self.lanes.fetch_started(LANES_PER_FETCH);
        let handlers = self.available_handlers();
        Some(FetchPlan {
            partitions,
            handlers: handlers.map(|ix| self.router.id_of(ix)).collect(),
            clock_offset: request.clock_offset,
            load,
            due: due.then(|| self.plan_due()),
            pending,
            sweep,
            find_runnable,
            blocking_keys: Arc::clone(&self.blocking_keys),
            router: Arc::clone(&self.router),
        })
    }

    fn plan_pending(&self, reason: Option<PollReason>) -> Option<PendingPlan> {
        if !self.has_room_for_page() {
            return None;
        }
        let room = self.free_records().min(RECORDS_PER_FETCH);
        let pages = self.watermarks.plan(room)?;
        Some(PendingPlan {
            pages,
            in_memory: self.lanes.records_in_memory(),
            highest_seen: self.watermarks.highest(),
            probe_first: reason == Some(PollReason::Timer) && self.lanes.in_memory() == 0,
        })
    }

    fn plan_due(&self) -> DuePlan {
        let records = self.lanes.records_in_memory();
        DuePlan {
            free: self.free_records(),
            deliveries: self.lanes.deliveries_in_memory(),
            records: records.iter().map(|record| record.id).collect(),
        }
    }

    /// A search of all handlers walks through all blocking rows and finds few lanes, so pending
    /// records come first.
    fn plan_search(&mut self, has_pending: bool) -> Option<FindRunnable> {
        let evicted = self.lanes.handlers_to_refill();
        for handler in &evicted {
            self.lanes.refill_requested(*handler);
        }
        let searches_all = match &mut self.pages_before_search {
            Some(pages @ 1..) if has_pending => {
                *pages -= 1;
                false
            }
            search => search.take().is_some(),
        };
        let (handlers, order) = if searches_all {
            (
                self.available_handlers().collect(),
                RunnableOrder::EveryLane,
            )
        } else if evicted.is_empty() {
            return None;
        } else {
            (evicted, RunnableOrder::OldestFirst)
        };
        Some(FindRunnable {
            handlers,
            order,
            // The search also finds lanes in memory. They must not use up its limit.
            limit: self.max_records / 4 + self.lanes.lane_count(),
        })
    }

    fn available_handlers(&self) -> impl Iterator<Item = HandlerIx> {
        let handlers = self.router.handlers();
        handlers.filter(|handler| self.lanes.is_available(*handler))
    }

    /// The fetch failed and returned nothing. A sweep finds the records that it would have read.
    pub(crate) fn on_fetch_failed(&mut self, plan: FetchPlan) {
        self.needs_sweep = true;
        if let Some(search) = &plan.find_runnable {
            match search.order {
                RunnableOrder::EveryLane => self.pages_before_search = Some(0),
                RunnableOrder::OldestFirst => self.mark_for_refill(search),
            }
        }
        self.lanes.fetch_failed(plan.load);
    }

    /// The fetch succeeded. Admits its rows to the lanes, in an order that is part of the protocol.
    pub(crate) fn on_fetched(&mut self, plan: &FetchPlan, fetched: Fetched) -> FetchSummary {
        let mut summary = FetchSummary::default();
        if let Some(mut blocking_keys) = fetched.blocking_keys {
            // Before any record of this fetch is parked: the keys that were written while the fetch
            // ran are still in memory.
            for (partition, key) in self.lanes.blocking_keys() {
                blocking_keys.add_key(partition, key);
            }
            self.blocking_keys = Arc::new(blocking_keys);
        }
        // Partitions may have been closed or lost while the fetch was under way.
        let open: HashSet<Partition> = self.watermarks.partitions().into_iter().collect();
        let is_open = |row: &FetchedRecord| open.contains(&row.partition);
        for due in fetched.due_deliveries {
            if is_open(&due.record)
                && let Some(handler) = self.router.by_id(&due.handler)
            {
                summary.due += usize::from(self.lanes.admit_due(handler, due));
            }
        }
        for (lane, rows) in fetched.loaded {
            if let Some(handler) = self.router.by_id(&lane.handler) {
                summary.new += rows.len();
                self.lanes.admit_loaded(&lane, handler, rows);
            }
        }
        if let Some(pending) = &plan.pending {
            self.watermarks.advance(&pending.pages, &fetched.pending);
        }
        let blocked = &fetched.blocked;
        for row in fetched.due_records.into_iter().filter(is_open) {
            summary.due += usize::from(self.admit(row, blocked));
        }
        for row in fetched.pending.into_iter().filter(is_open) {
            summary.new += usize::from(self.admit(row, blocked));
        }
        let is_open = |lane: &&LaneName| open.contains(&lane.partition);
        for lane in fetched.runnable.iter().filter(is_open) {
            if let Some(handler) = self.router.by_id(&lane.handler) {
                self.lanes.admit_runnable(lane, handler);
            }
        }
        // A search that reached its limit may have missed lanes.
        if let Some(search) = &plan.find_runnable
            && fetched.runnable.len() >= search.limit
        {
            self.mark_for_refill(search);
        }
        self.lanes.fetch_ended();
        summary.new += summary.due;
        summary
    }

    /// Returns whether the record was not in memory.
    fn admit(&mut self, row: FetchedRecord, blocked: &HashMap<String, HashSet<String>>) -> bool {
        let record = &row.record;
        let handlers = self.router.handlers_of(&record.event);
        if handlers.is_empty() {
            self.unhandled.found(&record.event);
        }
        let blocked = blocked.get(&record.key);
        let target = |&handler: &HandlerIx| Target {
            handler,
            is_blocked: blocked.is_some_and(|ids| ids.contains(self.router.id_of(handler))),
        };
        // Most records have one handler, and need no allocation.
        let targets: SmallVec<[Target; 1]> = handlers.iter().map(target).collect();
        self.lanes.admit_record(row, &targets)
    }

    fn mark_for_refill(&mut self, search: &FindRunnable) {
        for handler in &search.handlers {
            self.lanes.mark_for_refill(*handler);
        }
    }
}
