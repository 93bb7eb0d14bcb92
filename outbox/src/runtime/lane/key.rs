//! [`KeyState`]: the lanes and whole records of one key.

use std::{collections::VecDeque, sync::Arc};

use hashbrown::{HashMap, hash_map::EntryRef};
use smallvec::SmallVec;

use super::{
    Backlog, Generation, HandlerState, Lane, Memory, Origin, Outgoing, Target, rows::waiting_row,
};
use crate::{
    record::{Attempt, Partition, Record},
    registry::{HandlerIx, PerHandler},
};

/// The keys that have records in memory, by name.
pub(super) type Keys = HashMap<Box<str>, KeyState>;

/// The lanes and whole records of one key. Exists only while one of them is in memory.
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
    /// A handler has completed it, which only memory knows.
    partly_done: bool,
}

/// The key with this name. It is made if it is not in memory.
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
    pub(super) fn partition(&self) -> Partition {
        self.origin.partition
    }

    /// Whether it has been in memory since this generation or an earlier one.
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

    /// The lane of this handler. It is made with this backlog if it is not in memory.
    pub(super) fn lane_or_insert(&mut self, handler: HandlerIx, backlog: Backlog) -> &mut Lane {
        let found = self.lanes.iter().position(|lane| lane.handler() == handler);
        let at = found.unwrap_or_else(|| {
            self.lanes.push(Lane::new(handler, backlog));
            self.lanes.len() - 1
        });
        &mut self.lanes[at]
    }

    /// Forgets the lane if it is forgettable. Returns whether the key is empty then.
    pub(super) fn remove_if_forgettable(&mut self, handler: HandlerIx) -> bool {
        self.lanes
            .retain(|lane| lane.handler() != handler || !lane.is_forgettable());
        self.lanes.is_empty() && self.whole.is_empty()
    }

    /// Adds a record without delivery rows, for these handlers.
    pub(super) fn add_whole(&mut self, record: Arc<Record>, targets: &[Target]) {
        self.whole.push_back(WholeRecord {
            record,
            unfinished: targets.iter().map(|target| target.handler).collect(),
            partly_done: false,
        });
    }

    /// A handler completed a whole record. Returns whether all of its handlers have, or `None` if
    /// the record is not whole.
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

    /// Whether the record has no delivery rows.
    pub(super) fn is_whole(&self, id: i64) -> bool {
        self.whole.iter().any(|whole| whole.record.id == id)
    }

    /// Gives every whole record of the key its delivery rows, in order. If one record of a lane has
    /// a row, all of its records have one, so that their order survives a crash.
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

    /// Whether some handlers have completed a whole record.
    pub(super) fn has_partly_done(&self) -> bool {
        self.whole.iter().any(|whole| whole.partly_done)
    }

    /// Whether one of several handlers has completed a whole record, or may complete it soon.
    pub(super) fn may_become_partly_done(&self) -> bool {
        self.whole.iter().any(|whole| {
            let is_shared = whole.unfinished.len() > 1;
            whole.partly_done || is_shared && is_running(&self.lanes, whole.record.id)
        })
    }

    /// Removes the whole records that do not run, and returns their ids.
    pub(super) fn take_not_running(&mut self) -> Vec<i64> {
        let mut taken = Vec::new();
        self.whole.retain(|whole| {
            let is_kept = is_running(&self.lanes, whole.record.id);
            if !is_kept {
                taken.push(whole.record.id);
            }
            is_kept
        });
        taken
    }
}

/// Whether a burst of one of these lanes has the record. No set: a shutdown asks this for every key in
/// memory, and hardly any of them runs.
fn is_running(lanes: &[Lane], id: i64) -> bool {
    lanes
        .iter()
        .any(|lane| lane.burst_records().any(|one| one == id))
}
