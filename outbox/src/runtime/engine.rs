//! What is to be read, started and written next. Knows nothing of connections, tasks or time: the
//! loop in [`super::run`] does what it says.

use std::{collections::BTreeSet, sync::Arc};

use hashbrown::{HashMap, HashSet};
use tokio::time::Instant;

use crate::{
    registry::route::Router,
    runtime::{
        fetch::{BlockingKeys, FetchPlan, Fetched, Watermarks},
        lane::{HandlerIx, LaneSettings, Lanes, Route},
        meters::Unhandled,
        ownership::{
            claim::ClaimRequest,
            lease_table::{LeaseChanges, LeaseTable},
        },
    },
    store::{FetchedRecord, LaneName, Lease},
};

/// Lanes, watermarks and leases, kept in step.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) lanes: Lanes,
    pub(crate) leases: LeaseTable,
    marks: Watermarks,
    router: Arc<Router>,
    renames: Vec<(&'static str, &'static str)>,
    partitions: u16,
    /// How many records may be in memory.
    most: usize,
    /// Of a fetch that is under way too: what is added meanwhile, it need not know.
    may_block: Arc<BlockingKeys>,
    /// Lanes that could run are to be looked for, after so many more pages at the latest.
    look: Option<u8>,
    paused: HashSet<HandlerIx>,
    unhandled: Unhandled,
}

/// Which kinds of things are to be read now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FetchRequest {
    /// Look at all partitions again.
    pub(crate) poll: bool,
    /// And nothing says that there is something.
    pub(crate) unprompted: bool,
    pub(crate) due: bool,
    pub(crate) sweep: bool,
    /// Microseconds added to the database's clock.
    pub(crate) offset: i64,
}

/// What a fetch brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FetchSummary {
    /// Records and deliveries that were not in memory.
    pub(crate) new: usize,
    /// Of those, the ones that had become due.
    pub(crate) due: usize,
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
    pub(crate) fn new(
        settings: LaneSettings,
        leases: LeaseTable,
        router: Arc<Router>,
        renames: Vec<(&'static str, &'static str)>,
        partitions: u16,
        most: usize,
    ) -> Self {
        Self {
            lanes: Lanes::new(settings),
            leases,
            marks: Watermarks::default(),
            router,
            renames,
            partitions,
            most,
            may_block: Arc::default(),
            look: None,
            paused: HashSet::new(),
            unhandled: Unhandled::default(),
        }
    }

    /// What to ask the database for to keep what is owned, to give up what is drained and to get
    /// a fair share. From now on nothing of what is drained is in memory.
    pub(crate) fn claim(&mut self, micros: i64, left: BTreeSet<Lease>) -> ClaimRequest {
        ClaimRequest {
            owner: self.leases.owner,
            partitions: self.partitions,
            micros,
            joins: self.leases.is_new(),
            drained: self.give_up_drained(),
            held: self.leases.held(),
            left,
            renames: self.renames.clone(),
            router: Arc::clone(&self.router),
        }
    }

    /// Forgets what is drained: its leases are to be released.
    pub(crate) fn give_up_drained(&mut self) -> Vec<Lease> {
        let drained = self.lanes.drained();
        if !drained.is_empty() {
            self.lanes.lose(&drained, &[]);
        }
        let may_block = Arc::make_mut(&mut self.may_block);
        drained.iter().for_each(|part| may_block.remove_part(*part));
        self.leases.give_up(&drained)
    }

    /// The answer to a claim. What was lost has to be stopped by the caller.
    pub(crate) fn claimed(&mut self, leases: &[Lease], asked_at: Instant) -> LeaseChanges {
        let changes = self.leases.claimed(leases, asked_at);
        let may_block = Arc::make_mut(&mut self.may_block);
        for part in &changes.lost {
            self.marks.remove(*part);
            may_block.remove_part(*part);
        }
        for part in &changes.gained {
            self.marks.add(*part);
            may_block.add_part(*part);
        }
        changes
    }

    /// Closes partitions, or opens closed ones again, until so many stay open. No fetch may be
    /// under way that is to arrive. Whether some are open again, and have to be read.
    pub(crate) fn keep_open(&mut self, share: usize) -> bool {
        let open = self.marks.parts();
        if open.len() > share {
            // Those with the least in memory are drained first.
            let load = self.lanes.load();
            let mut parts = open;
            parts.sort_by_key(|part| load.get(part).copied().unwrap_or(0));
            parts.truncate(parts.len() - share);
            parts.iter().for_each(|part| self.marks.remove(*part));
            self.lanes.close(&parts);
            return false;
        }
        let held = self.leases.held();
        let closed = held.iter().map(|lease| lease.part);
        let mut closed: Vec<u16> = closed.filter(|part| self.lanes.is_closed(*part)).collect();
        closed.truncate(share - open.len());
        let may_block = Arc::make_mut(&mut self.may_block);
        closed.iter().for_each(|part| {
            self.marks.add(*part);
            may_block.add_part(*part);
        });
        self.lanes.reopen(&closed);
        !closed.is_empty()
    }

    /// Room for records. What is read must fit into it.
    fn room(&self) -> usize {
        self.most.saturating_sub(self.lanes.in_flight())
    }

    /// Not even what is due can be read.
    pub(crate) fn has_no_room(&self) -> bool {
        self.room() == 0
    }

    /// There is something to read and no room for it.
    pub(crate) fn is_full(&self) -> bool {
        self.marks.hungry() && self.room() < self.most / 8
    }

    /// Takes some of what waits for the slowest handler out of memory.
    pub(crate) fn spill(&mut self) -> bool {
        self.lanes.spill(self.most / 4)
    }

    /// The next fetch, if there is something to read.
    pub(crate) fn round(&mut self, want: FetchRequest) -> Option<FetchPlan> {
        if want.poll || want.sweep {
            self.marks.wake();
        }
        if want.sweep {
            self.look = Some(PAGES_FIRST);
        }
        let room = self.room();
        // Not in small bites: wait until an eighth is free.
        let pending = match room >= self.most / 8 {
            true => self.marks.plan(room.min(AT_ONCE)),
            false => None,
        };
        let look = self.looks(pending.is_some());
        let thirsty = self.lanes.thirsty();
        let due = want.due && room > 0;
        let nothing = pending.is_none()
            && !due
            && !want.sweep
            && !look
            && !self.lanes.has_checks()
            && thirsty.is_empty();
        if nothing || self.marks.parts().is_empty() {
            return None;
        }
        thirsty.iter().for_each(|ix| self.lanes.quench(*ix));
        let ids = thirsty.iter().filter_map(|ix| self.router.id(*ix));
        // Lanes in memory may be found too; they must not hide the others.
        let runnable = self.most / 4 + self.lanes.count();
        Some(FetchPlan {
            parts: self.marks.parts(),
            handlers: self.running_handlers(),
            offset: want.offset,
            lanes: self.lanes.fetch_started(LANES_AT_ONCE),
            // What is in memory is found again; it must not hide what is not.
            due: due.then_some(self.most),
            known_deliveries: match due {
                true => self.lanes.known_deliveries(),
                false => HashSet::new(),
            },
            may_block: Arc::clone(&self.may_block),
            highest: self.marks.highest(),
            known: match pending {
                Some(_) => self.lanes.known_records(),
                None => Vec::new(),
            },
            sweep: want.sweep,
            look: look.then_some(runnable),
            thirst: runnable,
            thirsty: ids.collect(),
            unprompted: want.unprompted && self.lanes.in_flight() == 0,
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
        (0..)
            .map_while(|ix| Some((ix, self.router.id(ix)?)))
            .filter(|(ix, _)| !self.paused.contains(ix))
            .map(|(_, id)| id)
            .collect()
    }

    /// The fetch failed.
    pub(crate) fn failed(&mut self, round: FetchPlan) {
        self.thirst(&round.thirsty);
        self.lanes.fetch_failed(round.lanes);
    }

    /// The fetch succeeded: everything goes into its lanes.
    pub(crate) fn arrived(&mut self, round: &FetchPlan, arrived: Fetched) -> FetchSummary {
        let mut news = FetchSummary::default();
        if let Some(mut may_block) = arrived.may_block {
            // Only what was true before anything of this fetch is parked. What was written while
            // it was read is in memory.
            for (part, key) in self.lanes.blocking_keys() {
                may_block.add(part, key);
            }
            self.may_block = Arc::new(may_block);
        }
        let owned: HashSet<u16> = self.marks.parts().into_iter().collect();
        for due in arrived.due_deliveries {
            if owned.contains(&due.fetched.part)
                && let Some(handler) = self.router.handler(&due.handler)
            {
                news.due += usize::from(self.lanes.due_delivery(handler, due));
            }
        }
        for (lane, rows) in arrived.lanes {
            if let Some(handler) = self.router.handler(&lane.handler) {
                news.new += rows.len();
                self.lanes.parked_lane(&lane, handler, rows);
            }
        }
        if let Some(plan) = &round.pending {
            self.marks.read(plan, &arrived.pending);
        }
        let blocked = &arrived.blocked;
        for fetched in arrived.due_records {
            news.due += usize::from(self.record(fetched, blocked, &owned));
        }
        for fetched in arrived.pending {
            news.new += usize::from(self.record(fetched, blocked, &owned));
        }
        self.runnable(round, &arrived.runnable);
        self.lanes.fetch_ended();
        news.new += news.due;
        news
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
        let handlers = self.router.route(&record.event);
        if handlers.is_empty() {
            self.unhandled.found(&record.event);
        }
        let blocked = blocked.get(&record.key);
        let is_blocked = |ix: HandlerIx| {
            let id = self.router.id(ix);
            blocked.zip(id).is_some_and(|(ids, id)| ids.contains(id))
        };
        let mut one = [Route::default()];
        let many: Vec<Route>;
        let route = |handler| Route {
            handler,
            blocked: is_blocked(handler),
        };
        // Most records have one handler: no allocation for those.
        let routes: &[Route] = match &*handlers {
            &[handler] => {
                one[0] = route(handler);
                &one
            }
            handlers => {
                many = handlers.iter().copied().map(route).collect();
                &many
            }
        };
        self.lanes.record(fetched, routes)
    }

    fn runnable(&mut self, round: &FetchPlan, lanes: &[LaneName]) {
        for lane in lanes {
            if let Some(handler) = self.router.handler(&lane.handler) {
                self.lanes.runnable_lane(lane, handler);
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
        let handlers = handlers.iter().filter_map(|id| self.router.handler(id));
        handlers.for_each(|handler| self.lanes.thirst(handler));
    }

    /// What is written from now on may block in these keys, each with its partition.
    pub(crate) fn will_block<'a>(&mut self, keys: impl IntoIterator<Item = (u16, &'a str)>) {
        for (part, key) in keys {
            // A fetch that is under way has the other copy.
            if !self.may_block.contains(part, key) {
                Arc::make_mut(&mut self.may_block).add(part, key);
            }
        }
    }

    /// Which handlers are paused. Whether one goes on that was.
    pub(crate) fn pause(&mut self, ids: &[String]) -> bool {
        let now: HashSet<HandlerIx> = ids
            .iter()
            .filter_map(|id| self.router.handler(id))
            .collect();
        if now == self.paused {
            return false;
        }
        let goes_on = self.paused.difference(&now).next().is_some();
        for &handler in now.symmetric_difference(&self.paused.clone()) {
            let paused = now.contains(&handler);
            let id = self.router.id(handler);
            tracing::info!(handler = id, paused, "a handler was paused or goes on");
            self.lanes.pause(handler, paused);
        }
        self.paused = now;
        goes_on
    }
}
