//! The fourth input, from operators and from a full memory: lanes leave memory.

use std::cmp::Reverse;

use super::Lanes;
use crate::registry::HandlerIx;
use crate::runtime::lane::{Availability, KEEP_QUEUED, Lane, TakeFromQueue};

impl Lanes {
    /// A handler is paused or resumed. Its lanes leave memory when it is paused; when it is
    /// resumed, the runnable ones have to be found again.
    pub(crate) fn set_availability(&mut self, handler: HandlerIx, availability: Availability) {
        if self.handlers[handler].set_availability(availability) == availability {
            return;
        }
        match availability {
            // The search follows when this batch is written, so that it finds all parked records.
            Availability::Here => self.outgoing.evict_lanes_of(handler),
            Availability::Paused => {
                let lanes = self.park_all_lanes(handler);
                tracing::debug!(lanes, "lanes of a paused handler left memory");
            }
        }
    }

    pub(crate) fn is_available(&self, handler: HandlerIx) -> bool {
        self.handlers[handler].is_available()
    }

    /// Evicts waiting lanes of the handler that has most of them, and the ends of long queues. About
    /// `records` records of each leave memory. Returns whether there were any.
    pub(crate) fn evict(&mut self, records: usize) -> bool {
        let handlers = self.handlers.iter();
        let waiting = handlers.map(|(handler, state)| (state.waiting_lanes(), handler));
        let parked = match waiting.max_by_key(|(lanes, _)| *lanes) {
            Some((1.., handler)) => self.park_waiting_lanes(handler, records),
            _ => 0,
        };
        self.evict_tails(records) || parked > 0
    }

    /// Parks the ends of long queues, the longest first: a lane with a slot can fill the memory
    /// too, with one key. It keeps running, and loads its parked records when it needs them.
    fn evict_tails(&mut self, records: usize) -> bool {
        let tail = |lane: &Lane| lane.tail_len(KEEP_QUEUED);
        let lanes = self.lanes().filter(|(_, lane)| tail(lane) > 0);
        let found = lanes.map(|(key, lane)| (tail(lane), key.into(), lane.handler()));
        let mut tails: Vec<(usize, Box<str>, HandlerIx)> = found.collect();
        tails.sort_unstable_by_key(|(tail, ..)| Reverse(*tail));
        let mut left = records;
        for (tail, name, handler) in &tails {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(*tail);
            self.park(name, *handler, Lane::park_tail);
        }
        !tails.is_empty()
    }

    /// Parks all lanes of a handler. Returns how many had records that did not run.
    fn park_all_lanes(&mut self, handler: HandlerIx) -> usize {
        for work in self.handlers[handler].take_waiting(|_| true) {
            // It is still due in the database.
            self.outgoing.forget_delivery(work.record.id, handler);
        }
        let lanes = self.lanes().filter(|(_, lane)| lane.handler() == handler);
        let waiting = lanes.filter(|(_, lane)| lane.tail_len(0) > 0);
        let parked: Vec<Box<str>> = waiting.map(|(key, _)| key.into()).collect();
        for key in &parked {
            self.park(key, handler, Lane::block_queue);
        }
        parked.len()
    }

    /// Parks lanes that wait for a slot, the last ones first, until about `records` records have
    /// left memory. Returns how many lanes were parked.
    fn park_waiting_lanes(&mut self, handler: HandlerIx, records: usize) -> usize {
        let (mut left, mut parked) = (records, 0);
        while left > 0
            && let Some(first) = self.handlers[handler].take_last_waiting()
        {
            let key = &*first.record.key;
            if let Some(lane) = self.lane(key, handler) {
                left = left.saturating_sub(lane.queue_len());
                self.park(key, handler, Lane::block_queue);
                parked += 1;
            }
        }
        if parked > 0 {
            self.outgoing.evict_lanes_of(handler);
        }
        parked
    }

    /// Gives all records of the key rows. The records that `take` removes from the queue of the
    /// lane leave memory.
    pub(super) fn park(&mut self, key: &str, handler: HandlerIx, take: TakeFromQueue) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        entry.split(&self.handlers, &mut self.outgoing, &mut self.deliveries);
        if let Some(lane) = entry.lane(handler) {
            for work in take(lane) {
                self.outgoing.forget_delivery(work.record.id, handler);
            }
            self.outgoing.change_lane(key, handler);
        }
    }

    /// Handlers that may have runnable lanes in the database, and have none waiting in memory.
    pub(crate) fn handlers_to_refill(&self) -> Vec<HandlerIx> {
        let handlers = self.handlers.iter();
        handlers
            .filter(|(_, state)| state.needs_refill())
            .map(|(handler, _)| handler)
            .collect()
    }

    /// This handler may have runnable lanes that are not in memory.
    pub(crate) fn mark_for_refill(&mut self, handler: HandlerIx) {
        self.handlers[handler].set_needs_refill(true);
    }

    /// A fetch searches for these lanes. It may miss lanes that are parked from now on.
    pub(crate) fn refill_requested(&mut self, handler: HandlerIx) {
        self.handlers[handler].set_needs_refill(false);
    }
}
