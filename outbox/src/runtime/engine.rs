//! [`Engine`]: leases, watermarks and lanes, kept in step.

mod fetch;
mod ownership;

use std::sync::Arc;

use crate::{
    registry::{HandlerIx, route::Router},
    runtime::fetch::{BlockingKeys, Watermarks},
    runtime::lane::{AttemptEnd, Availability, Burst, LaneSettings, Lanes, OutgoingBatch, Work},
    runtime::{meters::UnhandledEvents, ownership::LeaseTable},
};

/// Leases, watermarks and lanes, kept in step. It uses no connection, no task and no clock. The
/// event loop and the test kit carry out its decisions, and property tests run it against a
/// database in memory.
#[derive(Debug)]
pub(crate) struct Engine {
    lanes: Lanes,
    leases: LeaseTable,
    watermarks: Watermarks,
    /// Shared with the fetch that is under way, which need not see keys that are added meanwhile.
    blocking_keys: Arc<BlockingKeys>,
    router: Arc<Router>,
    /// How many pages of pending records may come before a search for runnable lanes that are not
    /// in memory. The search is slow: it walks all blocking rows. `None`: no search is due.
    pages_before_search: Option<u8>,
    /// Set by a request for a sweep; cleared only by a plan that reads pages from id 0. If memory
    /// is crowded, the sweep is made later and not lost.
    needs_sweep: bool,
    /// How many records and deliveries may be in memory.
    max_records: usize,
    unhandled: UnhandledEvents,
    /// The number of partitions of all instances together.
    partition_count: u16,
}

impl Engine {
    /// `partition_count`: the partitions of all instances together. `max_records`: how many records
    /// and deliveries may be in memory.
    pub(crate) fn new(
        lanes: LaneSettings,
        leases: LeaseTable,
        router: Router,
        partition_count: u16,
        max_records: usize,
    ) -> Self {
        Self {
            lanes: Lanes::new(lanes),
            leases,
            watermarks: Watermarks::default(),
            blocking_keys: Arc::default(),
            router: Arc::new(router),
            pages_before_search: None,
            needs_sweep: false,
            max_records,
            unhandled: UnhandledEvents::default(),
            partition_count,
        }
    }

    /// The lanes, for questions only: the engine alone changes them.
    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// How many more records and deliveries have room in memory.
    fn free_records(&self) -> usize {
        self.max_records.saturating_sub(self.lanes.in_memory())
    }

    /// There is no room for any record, not even for a due one.
    pub(crate) fn is_full(&self) -> bool {
        self.free_records() == 0
    }

    /// There may be pending records, and too little room for a page of them.
    pub(crate) fn is_crowded(&self) -> bool {
        self.watermarks.has_unread() && !self.has_room_for_page()
    }

    /// Pages are read only when an eighth of the memory is free, so that they are not too small.
    fn has_room_for_page(&self) -> bool {
        self.free_records() >= self.max_records / 8
    }

    /// Evicts waiting lanes and the ends of long queues, about a quarter of the memory each.
    /// Returns whether there were any.
    pub(crate) fn evict(&mut self) -> bool {
        self.lanes.evict(self.max_records / 4)
    }
}

/// The calls of the runner.
impl Engine {
    /// Takes the bursts to start now. They have their slots already.
    pub(crate) fn take_bursts(&mut self) -> Vec<Burst> {
        self.lanes.take_bursts()
    }

    /// An invocation ended. Returns the id of the record that runs next in the same burst, if any.
    pub(crate) fn on_finished(&mut self, work: &Work, end: AttemptEnd) -> Option<i64> {
        self.lanes.on_finished(work, end)
    }

    /// An invocation was not started, because this process may no longer own its partition, or
    /// because the worker ended the burst early. Its record is the first of its lane again.
    pub(crate) fn on_not_started(&mut self, work: Work) {
        self.lanes.on_not_started(work);
    }

    /// Pauses these handlers and no others. Returns whether one was resumed, so that its lanes have
    /// to be found again.
    pub(crate) fn apply_pauses(&mut self, paused: &[String]) -> bool {
        let paused = paused.iter().filter_map(|id| self.router.by_id(id));
        let paused: Vec<HandlerIx> = paused.collect();
        let mut has_resumed = false;
        for handler in self.router.handlers() {
            let (id, is_paused) = (self.router.id_of(handler), paused.contains(&handler));
            let was_paused = !self.lanes.is_available(handler);
            if is_paused && !was_paused {
                tracing::info!(handler = id, "handler paused");
                self.lanes.set_availability(handler, Availability::Paused);
            } else if was_paused && !is_paused {
                tracing::info!(handler = id, "handler resumed");
                self.lanes.set_availability(handler, Availability::Here);
                has_resumed = true;
            }
        }
        has_resumed
    }
}

/// The calls of the writer.
impl Engine {
    /// Takes all changes that are to be written now. The caller writes them and then calls
    /// [`on_written`](Self::on_written). Their blocking keys count from now on: a fetch may read
    /// the rows before this process knows that they are written.
    pub(crate) fn take_batch(&mut self, clock_offset: i64) -> Option<OutgoingBatch> {
        let mut outgoing = self.lanes.take_batch()?;
        outgoing.shift_due(clock_offset);
        for (partition, key) in outgoing.batch().blocking_keys() {
            // Only if it is missing: `make_mut` copies all keys while a fetch shares them.
            if !self.blocking_keys.may_block(partition, key) {
                Arc::make_mut(&mut self.blocking_keys).add_key(partition, key);
            }
        }
        Some(outgoing)
    }

    /// A batch is written, or was refused because its partitions were lost.
    pub(crate) fn on_written(&mut self, written: OutgoingBatch) {
        self.lanes.on_written(written);
    }

    /// Call this before the engine is dropped. A record that some of its handlers have completed
    /// gets rows for its other handlers, so that the former do not run again.
    pub(crate) fn split_partly_done(&mut self) {
        self.lanes.split_partly_done();
    }
}
