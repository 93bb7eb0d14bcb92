//! Lanes go on, wait for a place, and leave memory.

use std::{mem, sync::Arc};

use crate::runtime::lane::{Burst, HandlerIx, Lane, Lanes, OutgoingBatch, Stand, Work};
use crate::store::LaneName;

/// How much of a long queue stays in memory when there is no room: as much as is read of a parked
/// lane at once.
const KEPT_IN_QUEUE: usize = 32;

impl Lanes {
    /// Does what a lane can do next: run, wait for a place, have its parked records read, or go.
    pub(super) fn advance(&mut self, key: &str, handler: HandlerIx) {
        self.advance_with(key, handler, false);
    }

    /// `place`: one was found for it, for which it had waited.
    fn advance_with(&mut self, key: &str, handler: HandlerIx, place: bool) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        let part = entry.held.part;
        let Some(lane) = entry.lane(handler) else {
            return;
        };
        lane.queued_for_place &= !place;
        if lane.turn > 0 || lane.queued_for_place {
            return;
        }
        let Some(settings) = self.settings.handlers.get(usize::from(handler)) else {
            return;
        };
        let Some(places) = self.handlers.get_mut(usize::from(handler)) else {
            return;
        };
        if self.closed.contains(&part) {
            // Before it is drained all of it is forgotten.
            return;
        }
        if let Some(first) = lane.queue.front() {
            if places.taken >= settings.places {
                lane.queued_for_place = true;
                places.waiting.push_back(Arc::clone(&first.record));
                return;
            }
            // Each record of one that has transactions waits for its own.
            let most = match settings.transactional {
                true => 1,
                false => places.turn,
            };
            places.taken += 1;
            self.start.extend(lane.take_turn(part, most));
            return;
        }
        if lane.stand == Stand::Behind && lane.settling == 0 {
            if places.paused {
                lane.stand = Stand::Blocked;
            } else {
                lane.stand = Stand::Checking { again: false };
                self.checks.push(LaneName {
                    part,
                    key: key.to_owned(),
                    handler: settings.id.to_owned(),
                });
                return;
            }
        }
        if !lane.is_idle() {
            return;
        }
        if self.fetching && lane.lingers {
            let lane = (key.into(), handler);
            self.fading.push(OutgoingBatch {
                era: self.era,
                lanes: vec![lane],
                ..OutgoingBatch::default()
            });
        } else if entry.drop_lane(handler) {
            self.keys.remove(key);
        }
    }

    fn drop_lane(&mut self, key: &str, handler: HandlerIx) {
        let entry = self.keys.get_mut(key);
        if entry.is_some_and(|entry| entry.drop_lane(handler)) {
            self.keys.remove(key);
        }
    }

    /// A delivery outside of its lane.
    pub(super) fn start_alone(&mut self, work: Work) {
        let handler = usize::from(work.handler);
        let Some(places) = self.handlers.get_mut(handler) else {
            return;
        };
        let all = self.settings.handlers.get(handler);
        if all.is_some_and(|settings| places.taken < settings.places) {
            places.taken += 1;
            let rest = Vec::new();
            self.start.push(Burst { first: work, rest });
        } else {
            places.alone.push_back(work);
        }
    }

    /// An invocation was not begun, because it might not be ours any more: it is the next again.
    pub(crate) fn not_begun(&mut self, work: Work) {
        self.leave_place(work.handler);
        let (key, handler) = (work.record.key.clone(), work.handler);
        let closed = self.closed.contains(&work.part);
        let places = self.handlers.get(usize::from(handler));
        let paused = places.is_some_and(|places| places.paused);
        if work.is_detached {
            if closed || paused {
                // Still due in the database.
                let delivery = (work.record.id, handler);
                self.unwritten.deliveries.push(delivery);
            } else {
                self.start_alone(work);
            }
        } else if let Some(lane) = self.keys.get_mut(&*key).and_then(|key| key.lane(handler))
            && let Some(running) = lane.running()
            && running.record.id == work.record.id
        {
            lane.turn = 0;
            if let Some(places) = self.handlers.get_mut(usize::from(handler)) {
                places.turn = 1;
            }
            self.turn_ended(work.part, &key, handler);
        }
        self.fill_places(handler);
    }

    /// What was in its turn and was not begun, waits again: where the partition was closed or the
    /// handler paused meanwhile, like all that waited then.
    pub(super) fn turn_ended(&mut self, part: u16, key: &str, handler: HandlerIx) {
        let closed = self.closed.contains(&part);
        let places = self.handlers.get(usize::from(handler));
        let paused = places.is_some_and(|places| places.paused);
        if !closed && !paused {
            self.advance(key, handler);
            return;
        }
        let lane = self.keys.get_mut(key).and_then(|key| key.lane(handler));
        let waits = lane.is_some_and(|lane| !lane.queue.is_empty());
        match (waits, closed) {
            (true, true) => self.close(&[part]),
            (true, false) => self.block(key, handler),
            (false, _) => self.advance(key, handler),
        }
    }

    pub(super) fn leave_place(&mut self, handler: HandlerIx) {
        if let Some(places) = self.handlers.get_mut(usize::from(handler)) {
            places.taken = places.taken.saturating_sub(1);
        }
    }

    /// Gives free places to those that wait for one, in the order in which they came.
    pub(super) fn fill_places(&mut self, handler: HandlerIx) {
        loop {
            let Some(places) = self.handlers.get_mut(usize::from(handler)) else {
                return;
            };
            let limit = self.settings.handlers.get(usize::from(handler));
            if limit.is_none_or(|settings| places.taken >= settings.places) {
                return;
            }
            if let Some(work) = places.alone.pop_front() {
                self.start_alone(work);
            } else if let Some(first) = places.waiting.pop_front() {
                self.advance_with(&first.key, handler, true);
            } else {
                return;
            }
        }
    }

    /// A batch is written: what it was about may leave memory, at once or when the fetch that is
    /// under way, which may have seen the time before, has arrived.
    pub(crate) fn written(&mut self, written: OutgoingBatch) {
        let era = written.era;
        for (key, handler) in &written.lanes {
            if let Some(lane) = self.lane_of(key, *handler, era) {
                lane.settling = lane.settling.saturating_sub(1);
            }
        }
        for (key, handler) in &written.lanes {
            self.advance(key, *handler);
        }
        for handler in &written.aside {
            self.thirst(*handler);
        }
        if self.fetching {
            self.fading.push(written);
        } else {
            self.forget(&written);
        }
    }

    /// A lane that was in memory in this era.
    fn lane_of(&mut self, key: &str, handler: HandlerIx, era: u32) -> Option<&mut Lane> {
        let key = self.keys.get_mut(key);
        key.filter(|key| key.held.era <= era)?.lane(handler)
    }

    pub(super) fn forget(&mut self, gone: &OutgoingBatch) {
        let era = gone.era;
        for id in &gone.records {
            if self.records.get(id).is_some_and(|held| held.era <= era) {
                self.records.remove(id);
            }
        }
        for delivery in &gone.deliveries {
            let held = self.deliveries.get(delivery);
            if held.is_some_and(|held| held.era <= era) {
                self.deliveries.remove(delivery);
            }
        }
        for (key, handler) in &gone.lanes {
            let lane = self.lane_of(key, *handler, era);
            if lane.is_some_and(|lane| lane.is_idle()) {
                self.drop_lane(key, *handler);
            }
        }
    }

    /// These partitions are not ours any more. What ran for them has been stopped by the caller,
    /// who gives back the handlers' places; what was to be written about them is dropped.
    pub(crate) fn lose(&mut self, lost: &[u16], stopped: &[HandlerIx]) {
        self.era += 1;
        let is_lost = |part: &u16| lost.contains(part);
        self.closed.retain(|part| !is_lost(part));
        self.keys.retain(|_, key| !is_lost(&key.held.part));
        self.checks.retain(|lane| !is_lost(&lane.part));
        let batch = &mut self.unwritten.batch;
        let records = &self.records;
        let kept = |id: &i64| records.get(id).is_some_and(|held| !is_lost(&held.part));
        batch.done.retain(kept);
        batch.unhandled.retain(kept);
        batch.split.retain(kept);
        batch.split_rows.retain(|row| !is_lost(&row.part));
        batch.changed.retain(|row| !is_lost(&row.part));
        batch.failures.retain(|row| !is_lost(&row.part));
        // It will be taken in the new era, in which the same may be read again.
        self.unwritten.records.retain(kept);
        let held = &self.deliveries;
        let kept = |name: &_| held.get(name).is_some_and(|held| !is_lost(&held.part));
        self.unwritten.deliveries.retain(kept);
        let keys = &self.keys;
        let lanes = &mut self.unwritten.lanes;
        lanes.retain(|(key, _)| keys.contains_key(key));
        self.records.retain(|_, held| !is_lost(&held.part));
        self.deliveries.retain(|_, held| !is_lost(&held.part));
        for places in &mut self.handlers {
            places.alone.retain(|work| !is_lost(&work.part));
        }
        // What was not started yet had its place all the same.
        let lost = self.start.extract_if(.., |turn| is_lost(&turn.first.part));
        let mut stopped = stopped.to_vec();
        stopped.extend(lost.map(|turn| turn.first.handler));
        stopped
            .iter()
            .for_each(|handler| self.leave_place(*handler));
        stopped
            .iter()
            .for_each(|handler| self.fill_places(*handler));
    }

    /// A handler is paused or goes on. When it goes on, its runnable lanes have to be read.
    pub(crate) fn pause(&mut self, handler: HandlerIx, paused: bool) {
        let Some(places) = self.handlers.get_mut(usize::from(handler)) else {
            return;
        };
        let was = mem::replace(&mut places.paused, paused);
        if was && !paused {
            // Not before what was parked meanwhile is written: it could not be found.
            self.unwritten.aside.push(handler);
        }
        if was || !paused {
            return;
        }
        let lanes = self.put_all_aside(handler);
        tracing::debug!(lanes, "lanes of a paused handler were put aside");
    }

    /// Takes queued lanes of the handler that holds most of them out of memory, so that others
    /// find room. They are read again when it has worked off what it has. Whether there were any.
    pub(crate) fn spill(&mut self, records: usize) -> bool {
        let queued = self.handlers.iter().map(|places| places.waiting.len());
        let slowest = queued.enumerate().max_by_key(|(_, lanes)| *lanes);
        let Some((handler, 1..)) = slowest else {
            return self.shorten(records);
        };
        let Ok(ix) = HandlerIx::try_from(handler) else {
            return false;
        };
        let lanes = self.put_aside(ix, records);
        if lanes > 0 {
            self.unwritten.aside.push(ix);
        }
        self.shorten(records) || lanes > 0
    }

    /// Parks the ends of long queues, the longest first, until about that many records have left
    /// memory: lanes that have a place can hold all the room too, with one key. They go on, and
    /// read what was parked when they get there. Whether there were any.
    fn shorten(&mut self, records: usize) -> bool {
        let kept = |lane: &Lane| lane.turn.max(KEPT_IN_QUEUE);
        let long = |lane: &Lane| lane.queue.len().saturating_sub(kept(lane));
        let keys = self.keys.iter();
        let lanes = keys.flat_map(|(key, of)| of.lanes.iter().map(move |lane| (key, lane)));
        let mut ends: Vec<(usize, Box<str>, HandlerIx)> = lanes
            .filter(|(_, lane)| long(lane) > 0)
            .map(|(key, lane)| (long(lane), key.clone(), lane.handler))
            .collect();
        ends.sort_unstable_by_key(|(end, ..)| std::cmp::Reverse(*end));
        let mut left = records;
        for (end, key, handler) in &ends {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(*end);
            let Some(entry) = self.keys.get_mut(key) else {
                continue;
            };
            entry.split(&self.settings, &mut self.unwritten, &mut self.deliveries);
            let Some(lane) = entry.lane(*handler) else {
                continue;
            };
            let parked = lane.queue.drain(kept(lane)..);
            let parked = parked.map(|item| (item.record.id, *handler));
            self.unwritten.deliveries.extend(parked);
            lane.parked();
            self.unwritten.lanes.push((key.clone(), *handler));
        }
        !ends.is_empty()
    }

    /// Handlers that may have runnable lanes in the database, and that have room for them.
    pub(crate) fn thirsty(&self) -> Vec<HandlerIx> {
        let handlers = self.handlers.iter().enumerate();
        let thirsty = handlers.filter(|(_, places)| {
            places.thirsty && !places.paused && places.waiting.is_empty() && places.alone.is_empty()
        });
        thirsty
            .filter_map(|(handler, _)| HandlerIx::try_from(handler).ok())
            .collect()
    }

    /// There may be runnable lanes of this handler that are not in memory.
    pub(crate) fn thirst(&mut self, handler: HandlerIx) {
        if let Some(places) = self.handlers.get_mut(usize::from(handler)) {
            places.thirsty = true;
        }
    }

    /// A fetch goes for them. What is put aside from now on, it may not see.
    pub(crate) fn quench(&mut self, handler: HandlerIx) {
        if let Some(places) = self.handlers.get_mut(usize::from(handler)) {
            places.thirsty = false;
        }
    }

    /// Parks the queues of all lanes of a handler. How many lanes.
    fn put_all_aside(&mut self, handler: HandlerIx) -> usize {
        if let Some(places) = self.handlers.get_mut(usize::from(handler)) {
            places.waiting.clear();
            // Still due in the database.
            let alone = places.alone.drain(..).map(|work| (work.record.id, handler));
            self.unwritten.deliveries.extend(alone);
        }
        let mut aside = Vec::new();
        for (name, key) in &mut self.keys {
            if let Some(lane) = key.lane(handler)
                && lane.queue.len() > lane.turn
            {
                lane.queued_for_place = false;
                aside.push(name.clone());
            }
        }
        for key in &aside {
            self.block(key, handler);
        }
        aside.len()
    }

    /// Parks the queues of a handler's lanes that wait for a place, the last ones first, until
    /// about that many records have left memory. How many lanes.
    fn put_aside(&mut self, handler: HandlerIx, records: usize) -> usize {
        let mut left = records;
        let mut lanes = 0;
        while left > 0 {
            let Some(places) = self.handlers.get_mut(usize::from(handler)) else {
                break;
            };
            let Some(first) = places.waiting.pop_back() else {
                break;
            };
            let key = self.keys.get_mut(&*first.key);
            if let Some(lane) = key.and_then(|key| key.lane(handler)) {
                lane.queued_for_place = false;
                left = left.saturating_sub(lane.queue.len());
                self.block(&first.key, handler);
                lanes += 1;
            }
        }
        lanes
    }
}
