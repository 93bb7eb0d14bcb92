//! Lanes in memory: which record may run now, and what is to be written about those that ran.
//!
//! A lane is (key, handler). Inside it one record runs at a time, in order; lanes are independent
//! of each other. [`Lanes`] is a state machine without I/O: records and outcomes go in, [`Work`]
//! to start, a [`Batch`] to write and lanes to read come out.
//!
//! A record is first *hot*: pending in the database, in memory for all of its handlers. If all of
//! them finish, one row is completed. Once one of them fails or has to wait, the record is
//! *split*: each handler that has not finished gets a delivery row. All hot records of a key are
//! split together, in their order: a lane that has rows has them for all it holds, so that after
//! a crash nothing that was behind comes first.

mod attempt_end;
mod close;
mod finish;
mod ingest;
#[expect(clippy::module_inception, reason = "one lane among the lanes")]
mod lane;
mod release;
mod row;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    mem,
    sync::Arc,
};

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

pub(crate) use attempt_end::AttemptEnd;
pub(crate) use ingest::Route;
pub(crate) use lane::HandlerIx;
use lane::{Item, Lane, Stand};
pub(crate) use row::completed_row;
use row::waiting;

use crate::{
    record::{Attempt, Record},
    store::{Batch, InMemory, LaneName},
};

/// What does not change while lanes live.
#[derive(Debug, Clone)]
pub(crate) struct LaneSettings {
    /// `stop-on-first-failure`.
    pub(crate) ordered: bool,
    /// How many records of a lane may be handed out at once.
    pub(crate) longest_turn: usize,
    pub(crate) handlers: Vec<HandlerSettings>,
}

/// A handler as lanes see it.
#[derive(Debug, Clone)]
pub(crate) struct HandlerSettings {
    pub(crate) id: &'static str,
    /// How many of its invocations may run at once.
    pub(crate) places: u32,
    /// Whether a record that failed for good lets the ones behind it go on.
    pub(crate) skips: bool,
    /// Whether it completes its records itself, in its own transaction.
    pub(crate) transactional: bool,
}

/// One invocation to be started.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) record: Arc<Record>,
    pub(crate) part: u16,
    pub(crate) handler: HandlerIx,
    pub(crate) attempt: Attempt,
    /// Whether it was read from a delivery row. If not, it may have got one since, or be about to.
    pub(crate) from_row: bool,
    /// Outside of its lane: retried while later records of the lane went on.
    pub(crate) is_detached: bool,
}

/// What a lane does with the place it has got: the first, then each of the others if the one
/// before [is done](Decision::is_completed) and whoever runs them likes to go on.
#[derive(Debug, Clone)]
pub(crate) struct Burst {
    pub(crate) first: Work,
    pub(crate) rest: Vec<Work>,
}

/// What is to be written, and what may be forgotten once it is.
#[derive(Debug, Default)]
pub(crate) struct OutgoingBatch {
    pub(crate) batch: Batch,
    /// The [`Lanes::era`] it was taken in.
    era: u32,
    records: Vec<i64>,
    deliveries: Vec<(i64, HandlerIx)>,
    lanes: Vec<(Box<str>, HandlerIx)>,
    /// Handlers with lanes that can be found as runnable once this is written.
    aside: Vec<HandlerIx>,
}

impl OutgoingBatch {
    /// What is to be written.
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }
}

/// All lanes of the partitions that this process owns.
#[derive(Debug)]
pub(crate) struct Lanes {
    settings: LaneSettings,
    keys: HashMap<Box<str>, Key>,
    handlers: Vec<Places>,
    /// Records that were read as pending or scheduled, with their partition, until what became of
    /// them is written and no fetch is under way that started before: a fetch that finds them
    /// again must not start them again.
    records: HashMap<i64, Held>,
    /// The same for deliveries.
    deliveries: HashMap<(i64, HandlerIx), Held>,
    /// Grows when partitions are lost. What was taken to be written before says nothing about
    /// what was read after.
    era: u32,
    unwritten: OutgoingBatch,
    start: Vec<Burst>,
    checks: Vec<LaneName>,
    /// Partitions that are to be handed over: nothing is started in them.
    closed: BTreeSet<u16>,
    fetching: bool,
    /// Written, to be forgotten when the fetch that is under way has arrived.
    fading: Vec<OutgoingBatch>,
}

/// What is in memory is of this partition, since this era.
#[derive(Debug, Clone, Copy)]
struct Held {
    part: u16,
    era: u32,
}

/// All of one key.
#[derive(Debug)]
struct Key {
    held: Held,
    /// Oldest first.
    hot: VecDeque<Hot>,
    lanes: SmallVec<[Lane; 1]>,
}

/// A record without delivery rows.
#[derive(Debug)]
struct Hot {
    record: Arc<Record>,
    unfinished: SmallVec<[HandlerIx; 4]>,
    /// Whether one of its handlers has finished, which only memory knows.
    begun: bool,
}

/// A handler's places for invocations.
#[derive(Debug, Default)]
struct Places {
    taken: u32,
    /// How many records a lane gets for its place. Grows with each turn that was worked off, and
    /// is one again after a turn that was not: its handler has to wait for something.
    turn: usize,
    /// Lanes that could run if there were a place, by their first record.
    waiting: VecDeque<Arc<Record>>,
    /// Deliveries outside of lanes, for the same.
    alone: VecDeque<Work>,
    paused: bool,
    /// There may be runnable lanes of it that are not in memory: they were put aside, or a fetch
    /// found more than it was to bring.
    thirsty: bool,
}

impl Lanes {
    pub(crate) fn new(settings: LaneSettings) -> Self {
        let handlers = settings.handlers.iter().map(|_| Places {
            turn: 1,
            ..Places::default()
        });
        Self {
            handlers: handlers.collect(),
            settings,
            keys: HashMap::new(),
            records: HashMap::new(),
            deliveries: HashMap::new(),
            era: 0,
            unwritten: OutgoingBatch::default(),
            start: Vec::new(),
            checks: Vec::new(),
            closed: BTreeSet::new(),
            fetching: false,
            fading: Vec::new(),
        }
    }

    /// How many lanes are in memory.
    pub(crate) fn count(&self) -> usize {
        self.keys.values().map(|key| key.lanes.len()).sum()
    }

    /// How many records and deliveries are in memory.
    pub(crate) fn in_flight(&self) -> usize {
        self.records.len() + self.deliveries.len()
    }

    /// Records that were read as pending.
    pub(crate) fn known_records(&self) -> Vec<InMemory> {
        let of = |(id, held): (&i64, &Held)| InMemory {
            part: held.part,
            id: *id,
        };
        self.records.iter().map(of).collect()
    }

    /// Deliveries that are in memory.
    pub(crate) fn known_deliveries(&self) -> HashSet<(i64, HandlerIx)> {
        self.deliveries.keys().copied().collect()
    }

    /// Invocations to start now.
    pub(crate) fn take_turns(&mut self) -> Vec<Burst> {
        mem::take(&mut self.start)
    }

    pub(crate) fn has_turns(&self) -> bool {
        !self.start.is_empty()
    }

    /// What is to be written now. Goes back to [`written`](Self::written) when it is.
    pub(crate) fn take_unwritten(&mut self) -> Option<OutgoingBatch> {
        self.has_unwritten().then(|| OutgoingBatch {
            era: self.era,
            ..mem::take(&mut self.unwritten)
        })
    }

    /// Whether there is something to be written.
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.unwritten.batch.is_empty()
            || !self.unwritten.deliveries.is_empty()
            || !self.unwritten.lanes.is_empty()
            || !self.unwritten.aside.is_empty()
    }

    /// Of what is to be written, how many records are simply done.
    pub(crate) fn done(&self) -> usize {
        self.unwritten.batch.done.len()
    }

    /// Whether there is something to be written, and nothing but that records are done.
    pub(crate) fn are_only_done(&self) -> bool {
        self.unwritten.batch.only_done()
            && self.unwritten.deliveries.is_empty()
            && self.unwritten.lanes.is_empty()
            && self.unwritten.aside.is_empty()
    }

    /// Whether there are parked lanes to be read.
    pub(crate) fn has_checks(&self) -> bool {
        !self.checks.is_empty()
    }

    /// What is left in memory, if anything is.
    #[cfg(test)]
    pub(crate) fn left_over(&self) -> Option<String> {
        let places = |places: &Places| {
            places.taken > 0 || !places.waiting.is_empty() || !places.alone.is_empty()
        };
        let left = self.in_flight() > 0
            || !self.keys.is_empty()
            || !self.start.is_empty()
            || !self.checks.is_empty()
            || !self.fading.is_empty()
            || !self.closed.is_empty()
            || self.has_unwritten()
            || self.handlers.iter().any(places);
        left.then(|| format!("{self:?}"))
    }

    /// A fetch starts. Returns at most `limit` parked lanes that it is to read.
    pub(crate) fn fetch_started(&mut self, limit: usize) -> Vec<LaneName> {
        self.fetching = true;
        let rest = self.checks.split_off(limit.min(self.checks.len()));
        mem::replace(&mut self.checks, rest)
    }

    /// The fetch failed: nothing arrives, and its lanes are to be read again.
    pub(crate) fn fetch_failed(&mut self, checks: Vec<LaneName>) {
        self.checks.extend(checks);
        self.fetch_ended();
    }

    /// Before all of this is forgotten: records that some of their handlers have finished get
    /// rows for the others, so that those do not run again.
    pub(crate) fn leave(&mut self) {
        for key in self.keys.values_mut() {
            if key.hot.iter().any(|hot| hot.begun) {
                key.split(&self.settings, &mut self.unwritten, &mut self.deliveries);
            }
        }
    }

    /// Keys in memory in which something blocks, or may once it is written, each with its
    /// partition: those with a lane that has rows, or had some since it is here.
    pub(crate) fn blocking_keys(&self) -> impl Iterator<Item = (u16, &str)> {
        let has_rows = |lane: &Lane| lane.lingers || lane.stand != Stand::Open;
        let keys = self.keys.iter();
        let keys = keys.filter(move |(_, key)| key.lanes.iter().any(has_rows));
        keys.map(|(name, key)| (key.held.part, &**name))
    }

    fn settings(&self, handler: HandlerIx) -> Option<&HandlerSettings> {
        self.settings.handlers.get(usize::from(handler))
    }
}

impl Key {
    fn lane(&mut self, handler: HandlerIx) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.handler == handler)
    }

    /// Drops a lane of which nothing is in memory. Whether nothing of the key is, then.
    fn drop_lane(&mut self, handler: HandlerIx) -> bool {
        self.lanes
            .retain(|lane| lane.handler != handler || !lane.is_idle());
        self.lanes.is_empty() && self.hot.is_empty()
    }

    /// The lane, made as `stand` says if it is not in memory.
    fn lane_or(&mut self, handler: HandlerIx, stand: impl FnOnce() -> Stand) -> &mut Lane {
        let at = self.lanes.iter().position(|lane| lane.handler == handler);
        let at = at.unwrap_or_else(|| {
            self.lanes.push(Lane::new(handler, stand()));
            self.lanes.len() - 1
        });
        &mut self.lanes[at]
    }

    /// Gives every hot record its delivery rows, `waiting`. Queued and running ones go on.
    fn split(
        &mut self,
        settings: &LaneSettings,
        unwritten: &mut OutgoingBatch,
        deliveries: &mut HashMap<(i64, HandlerIx), Held>,
    ) {
        for hot in self.hot.drain(..) {
            unwritten.batch.split.push(hot.record.id);
            unwritten.records.push(hot.record.id);
            for handler in hot.unfinished {
                let Some(handler_settings) = settings.handlers.get(usize::from(handler)) else {
                    continue;
                };
                let attempt = Attempt::first();
                let row = waiting(self.held.part, &hot.record, handler_settings.id, attempt);
                unwritten.batch.split_rows.push(row);
                deliveries.insert((hot.record.id, handler), self.held);
            }
        }
        for lane in &mut self.lanes {
            lane.lingers = true;
            lane.queue.iter_mut().for_each(|item| item.stored = true);
        }
    }
}
