//! [`KeyState`]: everything of one key.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use hashbrown::{HashMap, hash_map::EntryRef};
use smallvec::SmallVec;

use super::{
    Backlog, Generation, HandlerState, Lane, Memory, Origin, Outgoing, Target, rows::waiting_row,
};
use crate::{
    record::{Attempt, Record},
    registry::{HandlerIx, PerHandler},
};

/// The keys of which something is in memory, by name.
pub(super) type Keys = HashMap<Box<str>, KeyState>;

/// Everything of one key. In memory only while something of it is.
#[derive(Debug)]
pub(super) struct KeyState {
    origin: Origin,
    /// Oldest first.
    whole: VecDeque<WholeRecord>,
    lanes: SmallVec<[Lane; 1]>,
}

/// A record without delivery rows.
#[derive(Debug)]
struct WholeRecord {
    record: Arc<Record>,
    unfinished: SmallVec<[HandlerIx; 4]>,
    /// A handler has ended it, which only memory knows.
    partly_done: bool,
}

/// The key with this name, made if nothing of it is in memory.
pub(super) fn key_state<'a>(keys: &'a mut Keys, origin: Origin, name: &str) -> &'a mut KeyState {
    let new = || KeyState {
        origin,
        whole: VecDeque::new(),
        lanes: SmallVec::new(),
    };
    match keys.entry_ref(name) {
        EntryRef::Occupied(entry) => entry.into_mut(),
        EntryRef::Vacant(entry) => entry.insert_with_key(name.into(), new()),
    }
}

impl KeyState {
    pub(super) fn partition(&self) -> u16 {
        self.origin.partition
    }

    /// Whether it is in memory since this generation or an earlier one.
    pub(super) fn is_of(&self, generation: Generation) -> bool {
        self.origin.generation <= generation
    }

    pub(super) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    pub(super) fn lanes_mut(&mut self) -> &mut [Lane] {
        &mut self.lanes
    }

    pub(super) fn lane(&mut self, handler: HandlerIx) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.handler() == handler)
    }

    /// The lane, made with this backlog if it is not in memory.
    pub(super) fn lane_or_insert(&mut self, handler: HandlerIx, backlog: Backlog) -> &mut Lane {
        let found = self.lanes.iter().position(|lane| lane.handler() == handler);
        let at = found.unwrap_or_else(|| {
            self.lanes.push(Lane::new(handler, backlog));
            self.lanes.len() - 1
        });
        &mut self.lanes[at]
    }

    /// Forgets a lane of which nothing is in memory. Whether nothing of the key is, then.
    pub(super) fn remove_if_forgettable(&mut self, handler: HandlerIx) -> bool {
        self.lanes
            .retain(|lane| lane.handler() != handler || !lane.is_forgettable());
        self.lanes.is_empty() && self.whole.is_empty()
    }

    /// A record without delivery rows, for these handlers.
    pub(super) fn add_whole(&mut self, record: Arc<Record>, targets: &[Target]) {
        self.whole.push_back(WholeRecord {
            record,
            unfinished: targets.iter().map(|target| target.handler).collect(),
            partly_done: false,
        });
    }

    /// A handler completed a whole record. Whether all of its handlers have. `None` if the record
    /// is not whole.
    pub(super) fn completed_by(&mut self, id: i64, handler: HandlerIx) -> Option<bool> {
        let at = self.whole.iter().position(|whole| whole.record.id == id)?;
        let whole = &mut self.whole[at];
        whole.unfinished.retain(|other| *other != handler);
        whole.partly_done = true;
        let is_complete = whole.unfinished.is_empty();
        if is_complete {
            self.whole.remove(at);
        }
        Some(is_complete)
    }

    /// The record has no delivery rows.
    pub(super) fn is_whole(&self, id: i64) -> bool {
        self.whole.iter().any(|whole| whole.record.id == id)
    }

    /// Gives every whole record its delivery rows, all of a key and in order: a lane that has rows
    /// has them for everything that it holds, so that after a crash nothing overtakes.
    pub(super) fn split(
        &mut self,
        handlers: &PerHandler<HandlerState>,
        outgoing: &mut Outgoing,
        deliveries: &mut Memory<(i64, HandlerIx)>,
    ) {
        let partition = self.origin.partition;
        for whole in self.whole.drain(..) {
            let record = &*whole.record;
            outgoing.split_record(record.id);
            for handler in whole.unfinished {
                let id = handlers[handler].settings().id;
                outgoing.add_delivery(waiting_row(partition, record, id, Attempt::first()));
                deliveries.admit((record.id, handler), self.origin);
            }
        }
        self.lanes.iter_mut().for_each(Lane::got_rows);
    }

    /// A whole record has handlers that have ended it.
    pub(super) fn has_partly_done(&self) -> bool {
        self.whole.iter().any(|whole| whole.partly_done)
    }

    /// A whole record has handlers that have ended it, or run, beside others that have not.
    pub(super) fn may_become_partly_done(&self) -> bool {
        let running = self.burst_records();
        self.whole.iter().any(|whole| {
            let is_running = running.contains(&whole.record.id);
            whole.partly_done || whole.unfinished.len() > 1 && is_running
        })
    }

    /// Whole records that do not run leave the key.
    pub(super) fn take_not_running(&mut self) -> Vec<i64> {
        let running = self.burst_records();
        let ids = self.whole.iter().map(|whole| whole.record.id);
        let taken = ids.filter(|id| !running.contains(id)).collect();
        self.whole
            .retain(|whole| running.contains(&whole.record.id));
        taken
    }

    /// The records of all bursts that run.
    fn burst_records(&self) -> HashSet<i64> {
        self.lanes.iter().flat_map(Lane::burst_records).collect()
    }
}
