//! The first input: lanes admit the rows of a fetch.
//!
//! In this order: due deliveries, loaded lanes, records, runnable lanes. Memory wins over the rows
//! of the fetch, which may be older.

use std::{mem, sync::Arc};

use super::Lanes;
use crate::runtime::lane::{Backlog, FetchPhase, Work, key::key_state};
use crate::{
    registry::HandlerIx,
    store::{FetchedDelivery, FetchedRecord, LaneName},
};

/// A handler that a fetched record goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) handler: HandlerIx,
    /// The fetch saw a blocking delivery in this lane.
    pub(crate) is_blocked: bool,
}

impl Lanes {
    /// A fetch starts. Returns at most `max_lanes` lanes whose parked deliveries it is to load.
    pub(crate) fn fetch_started(&mut self, max_lanes: usize) -> Vec<LaneName> {
        self.fetch = FetchPhase::UnderWay {
            forget_after: Vec::new(),
        };
        let rest = self.to_load.split_off(max_lanes.min(self.to_load.len()));
        mem::replace(&mut self.to_load, rest)
    }

    /// The fetch failed and returned nothing. Another fetch loads its lanes.
    pub(crate) fn fetch_failed(&mut self, to_load: Vec<LaneName>) {
        self.to_load.extend(to_load);
        self.fetch_ended();
    }

    /// All rows of a fetch are admitted. Batches that were written while it ran leave memory.
    pub(crate) fn fetch_ended(&mut self) {
        if let FetchPhase::UnderWay { forget_after } =
            mem::replace(&mut self.fetch, FetchPhase::Idle)
        {
            for (generation, list) in &forget_after {
                self.forget(list, *generation);
            }
        }
    }

    /// Admits a record that is pending, or scheduled and due. Returns whether it was not in memory.
    pub(crate) fn admit_record(&mut self, fetched: FetchedRecord, targets: &[Target]) -> bool {
        let FetchedRecord { partition, record } = fetched;
        let origin = self.origin(partition);
        if !self.records.admit(record.id, origin) {
            return false;
        }
        if targets.is_empty() {
            self.outgoing.set_unhandled(record.id);
            return true;
        }
        let record = Arc::new(record);
        let key = key_state(&mut self.keys, origin, &record.key);
        let mut is_parked = false;
        for target in targets {
            let (handler, state) = (target.handler, &self.handlers[target.handler]);
            let backlog = if target.is_blocked || !state.is_available() {
                Backlog::Blocked
            } else {
                Backlog::None
            };
            let lane = key.lane_or_insert(handler, backlog);
            // If a record has several handlers, a transactional one needs a row of its own before
            // it runs: its transaction completes that row, and leaves the record to the others.
            let needs_row_first = state.settings().is_transactional && targets.len() > 1;
            let joins_queue = lane.backlog() == Backlog::None && state.is_available();
            if joins_queue && !needs_row_first {
                lane.enqueue(Work::first(Arc::clone(&record), partition, handler));
            } else {
                lane.note_parked();
                self.outgoing.change_lane(&record.key, handler);
                self.outgoing.forget_delivery(record.id, handler);
                is_parked = true;
            }
        }
        key.add_whole(Arc::clone(&record), targets);
        if is_parked {
            key.split(&self.handlers, &mut self.outgoing, &mut self.deliveries);
        }
        for target in targets {
            self.advance(&record.key, target.handler);
        }
        true
    }

    /// Admits a delivery that is due for a retry or replayed. Returns whether it was not in memory.
    pub(crate) fn admit_due(&mut self, handler: HandlerIx, due: FetchedDelivery) -> bool {
        let FetchedRecord { partition, record } = due.record;
        let origin = self.origin(partition);
        if !self.deliveries.admit((record.id, handler), origin) {
            return false;
        }
        let record = Arc::new(record);
        let work = Work {
            attempt: due.attempt,
            from_row: true,
            is_detached: !due.blocking,
            ..Work::first(Arc::clone(&record), partition, handler)
        };
        if work.is_detached {
            self.handlers[handler].wait_for_slot(work);
            self.grant_slots(handler);
            return true;
        }
        let key = key_state(&mut self.keys, origin, &record.key);
        // The fetch may have missed records that this process has just parked behind it.
        let has_backlog = due.has_followers || key.lane(handler).is_some();
        let lane = key.lane_or_insert(handler, Backlog::Blocked);
        lane.admit_due(work, has_backlog);
        self.advance(&record.key, handler);
        true
    }

    /// Admits the first parked deliveries of a lane that was loaded, in order.
    pub(crate) fn admit_loaded(
        &mut self,
        name: &LaneName,
        handler: HandlerIx,
        rows: Vec<FetchedDelivery>,
    ) {
        if self.is_closing(name.partition) {
            return;
        }
        let origin = self.origin(name.partition);
        let key = self.keys.get_mut(&*name.key);
        let lane = key.and_then(|key| key.lane(handler));
        let Some(lane) = lane.filter(|lane| lane.is_loading()) else {
            return;
        };
        // Lanes of a paused handler are found again when it is resumed.
        let mut is_blocked = !self.handlers[handler].is_available();
        let rows = if is_blocked { Vec::new() } else { rows };
        let mut has_more = false;
        for (position, row) in rows.into_iter().enumerate() {
            // Only the last row counts: the followers of the others are in `rows` too.
            has_more = row.has_followers;
            let record = row.record.record;
            if self.deliveries.contains(&(record.id, handler)) {
                // It is not forgotten yet, or due and in the queue: the lane is loaded again later.
                has_more = true;
                break;
            }
            if !row.is_waiting {
                // The rows behind it are loaded after it ended.
                is_blocked = position == 0;
                has_more = true;
                break;
            }
            self.deliveries.admit((record.id, handler), origin);
            lane.enqueue(Work {
                attempt: row.attempt,
                from_row: true,
                ..Work::first(Arc::new(record), name.partition, handler)
            });
        }
        lane.loaded(is_blocked, has_more);
        self.advance(&name.key, handler);
    }

    /// Admits a lane whose first parked delivery could run when the fetch read it.
    pub(crate) fn admit_runnable(&mut self, name: &LaneName, handler: HandlerIx) {
        if !self.handlers[handler].is_available() || self.is_closing(name.partition) {
            return;
        }
        let origin = self.origin(name.partition);
        let key = key_state(&mut self.keys, origin, &name.key);
        let lane = key.lane_or_insert(handler, Backlog::Blocked);
        if lane.backlog() == Backlog::Blocked {
            lane.unblock(true);
            self.advance(&name.key, handler);
        }
    }
}
