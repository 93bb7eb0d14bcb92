//! [`Engine`]: leases, watermarks and lanes, kept in step.

use std::{collections::BTreeSet, sync::Arc};

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::{
    registry::{HandlerIx, route::Router},
    runtime::{
        fetch::{
            BlockingKeys, FetchPlan, FetchRequest, FetchSummary, Fetched, PollReason, Watermarks,
        },
        lane::{AttemptEnd, Availability, Burst, LaneSettings, Lanes, OutgoingBatch, Target, Work},
        meters::Unhandled,
        ownership::{
            claim::ClaimRequest,
            lease_table::{LeaseChanges, LeaseTable},
        },
    },
    store::{FetchedRecord, LaneName, Lease},
};

/// Leases, watermarks and lanes, kept in step. Knows no connection, no task and no clock: the event
/// loop does what it says, so does the test kit, and property tests play it against a database in
/// memory.
#[derive(Debug)]
pub(crate) struct Engine {
    lanes: Lanes,
    leases: LeaseTable,
    watermarks: Watermarks,
    router: Arc<Router>,
    renames: Vec<(&'static str, &'static str)>,
    partitions: u16,
    /// How many records and deliveries may be in memory.
    max_records: usize,
    /// Of a fetch that is under way too: what is added meanwhile, it need not know.
    blocking_keys: Arc<BlockingKeys>,
    /// Lanes that could run are to be looked for, after so many more pages at the latest.
    look: Option<u8>,
    unhandled: Unhandled,
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

/// How many records are read at once: enough that a statement's own cost does not matter, and few
/// enough that the first are handled while the next are read.
const AT_ONCE: usize = 4096;
/// How many pages may come before the sweep's look for lanes that could run: enough to fill the
/// memory.
const PAGES_FIRST: u8 = 4;
/// How many parked lanes are read at once.
const LANES_AT_ONCE: usize = 64;

impl Engine {
    pub(crate) fn new(options: EngineOptions) -> Self {
        Self {
            lanes: Lanes::new(options.lanes),
            leases: options.leases,
            watermarks: Watermarks::default(),
            router: options.router,
            renames: options.renames,
            partitions: options.partitions,
            max_records: options.max_records,
            blocking_keys: Arc::default(),
            look: None,
            unhandled: Unhandled::default(),
        }
    }

    /// What to ask the database for to keep what is owned, to give up what is drained and to get
    /// a fair share. From now on nothing of what is drained is in memory.
    pub(crate) fn claim_request(
        &mut self,
        lease_micros: i64,
        offered: BTreeSet<Lease>,
    ) -> ClaimRequest {
        ClaimRequest {
            owner: self.leases.owner(),
            partitions: self.partitions,
            lease_micros,
            is_first: !self.leases.has_claimed(),
            to_release: self.release_drained(),
            owned: self.leases.leases(),
            offered,
            renames: self.renames.clone(),
            router: Arc::clone(&self.router),
        }
    }

    /// Forgets what is drained: its leases are to be released.
    pub(crate) fn release_drained(&mut self) -> Vec<Lease> {
        let drained = self.lanes.drained();
        if !drained.is_empty() {
            self.lanes.drop_partitions(&drained, &[]);
        }
        let may_block = Arc::make_mut(&mut self.blocking_keys);
        drained.iter().for_each(|part| may_block.remove_part(*part));
        self.leases.remove(&drained)
    }

    /// The answer to a claim. What was lost has to be stopped by the caller.
    pub(crate) fn on_claimed(&mut self, leases: &[Lease], asked_at: Instant) -> LeaseChanges {
        let changes = self.leases.update(leases, asked_at);
        let may_block = Arc::make_mut(&mut self.blocking_keys);
        for part in &changes.lost {
            self.watermarks.remove(*part);
            may_block.remove_part(*part);
        }
        for part in &changes.gained {
            self.watermarks.add(*part);
            may_block.add_part(*part);
        }
        changes
    }

    /// Closes partitions, or opens closed ones again, until so many stay open. No fetch may be
    /// under way that is to arrive. Whether some are open again, and have to be read.
    pub(crate) fn keep_open(&mut self, share: usize) -> bool {
        let open = self.watermarks.parts();
        if open.len() > share {
            // Those with the least in memory are drained first.
            let mut parts = open;
            parts.sort_by_key(|part| self.lanes.memory_of(*part));
            parts.truncate(parts.len() - share);
            parts.iter().for_each(|part| self.watermarks.remove(*part));
            self.lanes.close(&parts);
            return false;
        }
        let held = self.leases.leases();
        let closed = held.iter().map(|lease| lease.part);
        let mut closed: Vec<u16> = closed.filter(|part| self.lanes.is_closing(*part)).collect();
        closed.truncate(share - open.len());
        let may_block = Arc::make_mut(&mut self.blocking_keys);
        closed.iter().for_each(|part| {
            self.watermarks.add(*part);
            may_block.add_part(*part);
        });
        self.lanes.reopen(&closed);
        !closed.is_empty()
    }

    /// Room for records. What is read must fit into it.
    fn free_records(&self) -> usize {
        self.max_records.saturating_sub(self.lanes.in_memory())
    }

    /// Not even what is due can be read.
    pub(crate) fn is_full(&self) -> bool {
        self.free_records() == 0
    }

    /// There is something to read and no room for it.
    pub(crate) fn is_crowded(&self) -> bool {
        self.watermarks.hungry() && self.free_records() < self.max_records / 8
    }

    /// Takes some of what waits for the slowest handler out of memory.
    pub(crate) fn evict(&mut self) -> bool {
        self.lanes.evict(self.max_records / 4)
    }

    /// The next fetch, if there is something to read.
    pub(crate) fn plan_fetch(&mut self, request: FetchRequest) -> Option<FetchPlan> {
        if request.poll.is_some() || request.sweep {
            self.watermarks.wake();
        }
        if request.sweep {
            self.look = Some(PAGES_FIRST);
        }
        let room = self.free_records();
        // Not in small bites: wait until an eighth is free.
        let pending = match room >= self.max_records / 8 {
            true => self.watermarks.plan(room.min(AT_ONCE)),
            false => None,
        };
        let look = self.looks(pending.is_some());
        let thirsty = self.lanes.handlers_to_refill();
        let due = request.due && room > 0;
        let nothing = pending.is_none()
            && !due
            && !request.sweep
            && !look
            && !self.lanes.has_lanes_to_load()
            && thirsty.is_empty();
        if nothing || self.watermarks.parts().is_empty() {
            return None;
        }
        thirsty
            .iter()
            .for_each(|ix| self.lanes.refill_requested(*ix));
        let ids = thirsty.iter().map(|ix| self.router.id_of(*ix));
        // Lanes in memory may be found too; they must not hide the others.
        let runnable = self.max_records / 4 + self.lanes.lane_count();
        Some(FetchPlan {
            parts: self.watermarks.parts(),
            handlers: self.running_handlers(),
            offset: request.clock_offset,
            lanes: self.lanes.fetch_started(LANES_AT_ONCE),
            // What is in memory is found again; it must not hide what is not.
            due: due.then_some(self.max_records),
            known_deliveries: match due {
                true => self.lanes.deliveries_in_memory(),
                false => HashSet::new(),
            },
            may_block: Arc::clone(&self.blocking_keys),
            highest: self.watermarks.highest(),
            known: match pending {
                Some(_) => self.lanes.records_in_memory(),
                None => Vec::new(),
            },
            sweep: request.sweep,
            look: look.then_some(runnable),
            thirst: runnable,
            thirsty: ids.collect(),
            unprompted: request.poll == Some(PollReason::Timer) && self.lanes.in_memory() == 0,
            pending,
            router: Arc::clone(&self.router),
        })
    }

    /// Whether this fetch looks for lanes that could run. There are hardly any, and it walks through
    /// all that blocks: what is pending comes first, so that there is something to do meanwhile.
    fn looks(&mut self, pending: bool) -> bool {
        match self.look {
            Some(pages @ 1..) if pending => {
                self.look = Some(pages - 1);
                false
            }
            look => {
                self.look = None;
                look.is_some()
            }
        }
    }

    fn running_handlers(&self) -> Vec<&'static str> {
        let handlers = self.router.handlers();
        handlers
            .filter(|handler| self.lanes.is_available(*handler))
            .map(|handler| self.router.id_of(handler))
            .collect()
    }

    /// The fetch failed.
    pub(crate) fn on_fetch_failed(&mut self, round: FetchPlan) {
        self.thirst(&round.thirsty);
        self.lanes.fetch_failed(round.lanes);
    }

    /// The fetch succeeded: everything goes into its lanes.
    pub(crate) fn on_fetched(&mut self, round: &FetchPlan, arrived: Fetched) -> FetchSummary {
        let mut summary = FetchSummary {
            looked_for_due: round.due.is_some(),
            next_due: arrived.next_due,
            late_found: arrived.late,
            expects_late: arrived.late_possible,
            ..FetchSummary::default()
        };
        if let Some(mut may_block) = arrived.may_block {
            // Only what was true before anything of this fetch is parked. What was written while
            // it was read is in memory.
            for (part, key) in self.lanes.blocking_keys() {
                may_block.add(part, key);
            }
            self.blocking_keys = Arc::new(may_block);
        }
        let owned: HashSet<u16> = self.watermarks.parts().into_iter().collect();
        for due in arrived.due_deliveries {
            if owned.contains(&due.fetched.part)
                && let Some(handler) = self.router.by_id(&due.handler)
            {
                summary.due += usize::from(self.lanes.admit_due(handler, due));
            }
        }
        for (lane, rows) in arrived.lanes {
            if let Some(handler) = self.router.by_id(&lane.handler) {
                summary.new += rows.len();
                self.lanes.admit_loaded(&lane, handler, rows);
            }
        }
        if let Some(plan) = &round.pending {
            self.watermarks.read(plan, &arrived.pending);
        }
        let blocked = &arrived.blocked;
        for fetched in arrived.due_records {
            summary.due += usize::from(self.record(fetched, blocked, &owned));
        }
        for fetched in arrived.pending {
            summary.new += usize::from(self.record(fetched, blocked, &owned));
        }
        self.runnable(round, &arrived.runnable);
        self.lanes.fetch_ended();
        summary.new += summary.due;
        summary
    }

    fn record(
        &mut self,
        fetched: FetchedRecord,
        blocked: &HashMap<String, HashSet<String>>,
        owned: &HashSet<u16>,
    ) -> bool {
        if !owned.contains(&fetched.part) {
            return false;
        }
        let record = &fetched.record;
        let handlers = self.router.handlers_of(&record.event);
        if handlers.is_empty() {
            self.unhandled.found(&record.event);
        }
        let blocked = blocked.get(&record.key);
        let target = |&handler: &HandlerIx| Target {
            handler,
            is_blocked: blocked.is_some_and(|ids| ids.contains(self.router.id_of(handler))),
        };
        // Most records have one handler: no allocation for those.
        let targets: SmallVec<[Target; 1]> = handlers.iter().map(target).collect();
        self.lanes.admit_record(fetched, &targets)
    }

    fn runnable(&mut self, round: &FetchPlan, lanes: &[LaneName]) {
        for lane in lanes {
            if let Some(handler) = self.router.by_id(&lane.handler) {
                self.lanes.admit_runnable(lane, handler);
            }
        }
        // As many as were asked for: there may be more.
        match round.look {
            Some(limit) if lanes.len() >= limit => self.thirst(&round.handlers),
            None if lanes.len() >= round.thirst => self.thirst(&round.thirsty),
            Some(_) | None => {}
        }
    }

    fn thirst(&mut self, handlers: &[&str]) {
        let handlers = handlers.iter().filter_map(|id| self.router.by_id(id));
        handlers.for_each(|handler| self.lanes.mark_for_refill(handler));
    }

    /// What is written from now on may block in these keys, each with its partition.
    fn note_blocking<'a>(&mut self, keys: impl IntoIterator<Item = (u16, &'a str)>) {
        for (part, key) in keys {
            // A fetch that is under way has the other copy.
            if !self.blocking_keys.contains(part, key) {
                Arc::make_mut(&mut self.blocking_keys).add(part, key);
            }
        }
    }

    /// These handlers are paused, and no others. Whether one was resumed, so that its lanes have to be
    /// found again.
    pub(crate) fn apply_pauses(&mut self, paused: &[String]) -> bool {
        let paused: HashSet<HandlerIx> = paused
            .iter()
            .filter_map(|id| self.router.by_id(id))
            .collect();
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

    /// The leases, to be read. Claims and [`leases_renewed`](Self::leases_renewed) change them.
    pub(crate) fn leases(&self) -> &LeaseTable {
        &self.leases
    }

    /// A statement that was sent at `asked_at` renewed all leases.
    pub(crate) fn leases_renewed(&mut self, asked_at: Instant) {
        self.leases.renewed(asked_at);
    }

    /// These partitions belong to others now: memory forgets everything about them. `cancelled`:
    /// the handlers of the invocations that the caller has cancelled, one entry per slot.
    pub(crate) fn drop_partitions(&mut self, lost: &[u16], cancelled: &[HandlerIx]) {
        self.lanes.drop_partitions(lost, cancelled);
    }

    /// How many partitions are closing: nothing is started in them, and they are to be released.
    pub(crate) fn closing_count(&self) -> usize {
        self.lanes.closing_count()
    }

    /// Whether a closing partition can be released now.
    pub(crate) fn has_drained(&self) -> bool {
        self.lanes.has_drained()
    }

    /// How many records and deliveries are in memory.
    pub(crate) fn in_memory(&self) -> usize {
        self.lanes.in_memory()
    }

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

    /// Whether there is something to write.
    pub(crate) fn has_batch(&self) -> bool {
        self.lanes.has_batch()
    }

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
        self.note_blocking(outgoing.batch().blocking());
        Some(outgoing)
    }

    /// A batch is written, or will never be because its partitions were lost.
    pub(crate) fn on_written(&mut self, written: OutgoingBatch) {
        self.lanes.on_written(written);
    }

    /// Whether parked lanes are to be loaded by the next fetch.
    pub(crate) fn has_lanes_to_load(&self) -> bool {
        self.lanes.has_lanes_to_load()
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
    pub(crate) fn is_closing(&self, part: u16) -> bool {
        self.lanes.is_closing(part)
    }

    /// What is left in memory, if anything is.
    pub(crate) fn leftovers(&self) -> Option<String> {
        self.lanes.leftovers()
    }
}
