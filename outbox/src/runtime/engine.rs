//! [`Engine`]: leases, watermarks and lanes, kept in step.

mod fetch;
mod ownership;

use std::sync::Arc;

use crate::{
    registry::{HandlerIx, route::Router},
    runtime::{
        fetch::{BlockingKeys, Watermarks},
        lane::{AttemptEnd, Availability, Burst, LaneSettings, Lanes, OutgoingBatch, Work},
        meters::Unhandled,
        ownership::lease_table::LeaseTable,
    },
};

/// Leases, watermarks and lanes, kept in step. Knows no connection, no task and no clock: the event
/// loop does what it says, so does the test kit, and property tests play it against a database in
/// memory.
#[derive(Debug)]
pub(crate) struct Engine {
    lanes: Lanes,
    leases: LeaseTable,
    watermarks: Watermarks,
    /// Shared with the fetch that is under way, which need not see what is added meanwhile.
    blocking_keys: Arc<BlockingKeys>,
    router: Arc<Router>,
    search: RunnableSearch,
    /// Set by a request for a sweep; cleared only by a plan that reads pages from id 0. A sweep that
    /// meets a crowded memory is made later, not lost.
    sweep_owed: bool,
    /// How many records and deliveries may be in memory.
    max_records: usize,
    unhandled: Unhandled,
    renames: Vec<(&'static str, &'static str)>,
    /// How many partitions there are in all.
    partition_count: u16,
}

/// Whether to search for lanes that could run and are not in memory. The search walks everything that
/// blocks, so a few pages of pending records come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunnableSearch {
    NotWanted,
    Wanted { pages_first: u8 },
}

/// What an [`Engine`] is made of. Nothing of it changes while the engine lives.
#[derive(Debug)]
pub(crate) struct EngineOptions {
    pub(crate) lanes: LaneSettings,
    pub(crate) leases: LeaseTable,
    pub(crate) router: Arc<Router>,
    /// Handlers whose stored id changed: the old id, then the new one.
    pub(crate) renames: Vec<(&'static str, &'static str)>,
    /// How many partitions there are in all.
    pub(crate) partitions: u16,
    /// How many records and deliveries may be in memory.
    pub(crate) max_records: usize,
}

impl Engine {
    pub(crate) fn new(options: EngineOptions) -> Self {
        Self {
            lanes: Lanes::new(options.lanes),
            leases: options.leases,
            watermarks: Watermarks::default(),
            blocking_keys: Arc::default(),
            router: options.router,
            search: RunnableSearch::NotWanted,
            sweep_owed: false,
            max_records: options.max_records,
            unhandled: Unhandled::default(),
            renames: options.renames,
            partition_count: options.partitions,
        }
    }

    /// How many records and deliveries are in memory.
    pub(crate) fn in_memory(&self) -> usize {
        self.lanes.in_memory()
    }

    /// How many more find room.
    fn free_records(&self) -> usize {
        self.max_records.saturating_sub(self.in_memory())
    }

    /// Not even what is due finds room.
    pub(crate) fn is_full(&self) -> bool {
        self.free_records() == 0
    }

    /// There is something to read, and too little room to read it.
    pub(crate) fn is_crowded(&self) -> bool {
        self.watermarks.has_unread() && !self.has_room_for_page()
    }

    /// Pages are read when an eighth of the memory is free, not in small bites.
    fn has_room_for_page(&self) -> bool {
        self.free_records() >= self.max_records / 8
    }

    /// Takes a quarter of what waits for the slowest handler out of memory. Whether there was any.
    pub(crate) fn evict(&mut self) -> bool {
        self.lanes.evict(self.max_records / 4)
    }
}

/// Work.
impl Engine {
    pub(crate) fn has_bursts(&self) -> bool {
        self.lanes.has_bursts()
    }

    /// Invocations to start now. They have their slots already.
    pub(crate) fn take_bursts(&mut self) -> Vec<Burst> {
        self.lanes.take_bursts()
    }

    /// An invocation ended. The id of the record that runs next in the same burst, if one does.
    pub(crate) fn on_finished(&mut self, work: &Work, end: AttemptEnd) -> Option<i64> {
        self.lanes.on_finished(work, end)
    }

    /// An invocation was not started, because this process may no longer own it, or because its
    /// worker ended the burst early. It is the first of its lane again.
    pub(crate) fn on_not_started(&mut self, work: Work) {
        self.lanes.on_not_started(work);
    }

    /// These handlers are paused, and no others. Whether one was resumed, so that its lanes have to be
    /// found again.
    pub(crate) fn apply_pauses(&mut self, paused: &[String]) -> bool {
        let paused = paused.iter().filter_map(|id| self.router.by_id(id));
        let paused: Vec<HandlerIx> = paused.collect();
        let mut has_resumed = false;
        for handler in self.router.handlers() {
            let id = self.router.id_of(handler);
            match (self.lanes.is_available(handler), paused.contains(&handler)) {
                (true, true) => {
                    tracing::info!(handler = id, "handler paused");
                    self.lanes.set_availability(handler, Availability::Paused);
                }
                (false, false) => {
                    tracing::info!(handler = id, "handler resumed");
                    self.lanes.set_availability(handler, Availability::Here);
                    has_resumed = true;
                }
                (true, false) | (false, true) => {}
            }
        }
        has_resumed
    }
}

/// Writing.
impl Engine {
    /// How many records of the next batch are simply completed.
    pub(crate) fn completions(&self) -> usize {
        self.lanes.completions()
    }

    /// Whether the next batch has nothing but completed records in it.
    pub(crate) fn has_only_completions(&self) -> bool {
        self.lanes.has_only_completions()
    }

    /// Everything that is to be written now. Goes back to [`on_written`](Self::on_written) once it
    /// is. The keys in which it blocks something count from now on: a fetch may read it before we
    /// know that it is written.
    pub(crate) fn take_batch(&mut self, clock_offset: i64) -> Option<OutgoingBatch> {
        let mut outgoing = self.lanes.take_batch()?;
        outgoing.shift(clock_offset);
        for (partition, key) in outgoing.batch().blocking() {
            // Only if it is missing: a fetch that is under way has the other copy.
            if !self.blocking_keys.may_block(partition, key) {
                Arc::make_mut(&mut self.blocking_keys).add_key(partition, key);
            }
        }
        Some(outgoing)
    }

    /// A batch is written, or will never be because its partitions were lost.
    pub(crate) fn on_written(&mut self, written: OutgoingBatch) {
        self.lanes.on_written(written);
    }

    /// Before all of this is dropped: records that some of their handlers have completed get rows
    /// for the others, so that the completed ones do not run again.
    pub(crate) fn split_partly_done(&mut self) {
        self.lanes.split_partly_done();
    }
}

/// For the property tests.
#[cfg(test)]
impl Engine {
    pub(crate) fn is_closing(&self, partition: u16) -> bool {
        self.lanes.is_closing(partition)
    }

    /// What is left in memory, if anything is.
    pub(crate) fn leftovers(&self) -> Option<String> {
        self.lanes.leftovers()
    }
}
