//! Partitions that are to be handed over: nothing more is started in them, what runs is finished
//! and written, and then nothing of them is left in memory.

use std::collections::{BTreeMap, HashSet};

use crate::runtime::lane::{Key, Lanes, Stand};

impl Lanes {
    /// Nothing more is started in these partitions. What runs goes on; what waits leaves memory,
    /// as the database knows it.
    pub(crate) fn close(&mut self, parts: &[u16]) {
        self.closed.extend(parts);
        let is_closed = |part: &u16| parts.contains(part);
        for (name, key) in &mut self.keys {
            if !is_closed(&key.held.part) {
                continue;
            }
            // A handler that has finished, or may any moment, must not run again because another
            // one of the same record has not.
            if key.is_half_done() {
                key.split(&self.settings, &mut self.unwritten, &mut self.deliveries);
            }
            let records = &mut self.records;
            let running: HashSet<i64> = key.running().collect();
            key.hot.retain(|hot| {
                let stays = running.contains(&hot.record.id);
                if !stays {
                    records.remove(&hot.record.id);
                }
                stays
            });
            for lane in &mut key.lanes {
                lane.queued_for_place = false;
                let handler = lane.handler;
                let rows = lane.take_waiting().filter(|item| item.stored);
                let rows = rows.map(|item| (item.record.id, handler));
                let before = self.unwritten.deliveries.len();
                self.unwritten.deliveries.extend(rows);
                if self.unwritten.deliveries.len() > before {
                    lane.settling += 1;
                    lane.lingers = true;
                    let name = (name.clone(), lane.handler);
                    self.unwritten.lanes.push(name);
                    lane.stand = Stand::Behind;
                }
            }
        }
        let keys = &self.keys;
        let open = |name: &str| keys.get(name).is_none_or(|key| !is_closed(&key.held.part));
        for (handler, places) in (0..).zip(&mut self.handlers) {
            places.waiting.retain(|first| open(&first.key));
            // Still due in the database.
            let closed = places.alone.iter().filter(|work| is_closed(&work.part));
            let closed = closed.map(|work| (work.record.id, handler));
            self.unwritten.deliveries.extend(closed);
            places.alone.retain(|work| !is_closed(&work.part));
        }
        self.checks.retain(|lane| !is_closed(&lane.part));
    }

    /// These partitions are kept after all. The caller reads them again, and all their lanes.
    pub(crate) fn reopen(&mut self, parts: &[u16]) {
        parts.iter().for_each(|part| {
            self.closed.remove(part);
        });
        let mut lanes = Vec::new();
        for (name, key) in &mut self.keys {
            if !parts.contains(&key.held.part) {
                continue;
            }
            for lane in &mut key.lanes {
                if matches!(lane.stand, Stand::Checking { .. }) {
                    lane.stand = Stand::Behind;
                }
                lanes.push((name.clone(), lane.handler));
            }
        }
        for (name, handler) in lanes {
            self.advance(&name, handler);
        }
    }

    /// Closed partitions of which nothing runs or is to be written.
    pub(crate) fn drained(&self) -> Vec<u16> {
        let mut parts = self.closed.clone();
        let held = self.records.values().chain(self.deliveries.values());
        held.for_each(|held| {
            parts.remove(&held.part);
        });
        parts.into_iter().collect()
    }

    /// How many partitions are closed.
    pub(crate) fn closed(&self) -> usize {
        self.closed.len()
    }

    pub(crate) fn is_closed(&self, part: u16) -> bool {
        self.closed.contains(&part)
    }

    /// How many records and deliveries of each partition are in memory.
    pub(crate) fn load(&self) -> BTreeMap<u16, usize> {
        let mut load = BTreeMap::new();
        for held in self.records.values().chain(self.deliveries.values()) {
            *load.entry(held.part).or_default() += 1;
        }
        load
    }
}

impl Key {
    /// Records that run in a lane, or may any moment.
    fn running(&self) -> impl Iterator<Item = i64> {
        let turns = self
            .lanes
            .iter()
            .map(|lane| lane.queue.iter().take(lane.turn));
        turns.flatten().map(|item| item.record.id)
    }

    /// Whether a hot record has handlers that have finished, or run, beside others that have not.
    fn is_half_done(&self) -> bool {
        let running: HashSet<i64> = self.running().collect();
        self.hot
            .iter()
            .any(|hot| hot.begun || hot.unfinished.len() > 1 && running.contains(&hot.record.id))
    }
}
