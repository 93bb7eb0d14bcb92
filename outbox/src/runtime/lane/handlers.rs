//! [`HandlerState`]: a handler as lanes see it, with its slots.

use std::{collections::VecDeque, mem};

use super::Work;
use crate::record::Partition;

/// The settings of one handler. They do not change.
#[derive(Debug, Clone)]
pub(crate) struct HandlerSettings {
    /// The id, as it is stored.
    pub(crate) id: &'static str,
    /// How many of its invocations may run at once in this process.
    pub(crate) concurrency: u32,
    /// A record that failed permanently does not block the records behind it.
    pub(crate) skips_failed: bool,
    /// The handler completes its records itself, in its own transaction.
    pub(crate) is_transactional: bool,
}

/// A handler: whether it may run, its slots, and the lanes that wait for one. Only lanes write it.
///
/// Slots are granted in the order of waiting. A lane whose burst ended goes behind the lanes that
/// wait already, so a busy key does not delay the others.
#[derive(Debug)]
pub(super) struct HandlerState {
    settings: HandlerSettings,
    availability: Availability,
    slots_in_use: u32,
    /// The length of the next burst, in records.
    burst: usize,
    max_burst: usize,
    /// The first record of each lane that waits for a slot. A lane is in here once, while it is
    /// `AwaitingSlot`.
    waiting: VecDeque<Work>,
    /// Detached deliveries that wait for a slot.
    detached: VecDeque<Work>,
    /// Some runnable lanes of it may be in the database only: they were evicted, or a search
    /// reached its limit.
    needs_refill: bool,
}

/// Whether this process may run a handler now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Here,
    Paused,
}

impl HandlerState {
    pub(super) fn new(settings: HandlerSettings, max_burst: usize) -> Self {
        Self {
            // Each record of a transactional handler waits for a transaction of its own.
            max_burst: if settings.is_transactional {
                1
            } else {
                max_burst.max(1)
            },
            settings,
            availability: Availability::Here,
            slots_in_use: 0,
            burst: 1,
            waiting: VecDeque::new(),
            detached: VecDeque::new(),
            needs_refill: false,
        }
    }

    pub(super) fn settings(&self) -> &HandlerSettings {
        &self.settings
    }

    pub(super) fn is_available(&self) -> bool {
        self.availability == Availability::Here
    }

    /// Returns the availability before.
    pub(super) fn set_availability(&mut self, availability: Availability) -> Availability {
        mem::replace(&mut self.availability, availability)
    }

    /// Whether a fetch should search for runnable lanes of it. Not while lanes in memory wait.
    pub(super) fn needs_refill(&self) -> bool {
        self.needs_refill && self.is_available() && !self.has_waiting()
    }

    pub(super) fn set_needs_refill(&mut self, needs_refill: bool) {
        self.needs_refill = needs_refill;
    }
}

/// Slots. Only these methods grant and free them.
impl HandlerState {
    /// Takes a slot, unless all are in use or a lane or delivery waits for one.
    pub(super) fn try_take_slot(&mut self) -> bool {
        let is_free = self.has_free_slot() && !self.has_waiting();
        self.slots_in_use += u32::from(is_free);
        is_free
    }

    /// Takes a slot for the next in line: detached deliveries first, then lanes in the order of
    /// waiting. `None` if no slot is free or nothing waits.
    pub(super) fn take_slot_for_next(&mut self) -> Option<Work> {
        if !self.has_free_slot() {
            return None;
        }
        let next = self.detached.pop_front();
        let next = next.or_else(|| self.waiting.pop_front())?;
        self.slots_in_use += 1;
        Some(next)
    }

    /// Gives a slot back. The caller grants it to the next.
    pub(super) fn free_slot(&mut self) {
        self.slots_in_use = self.slots_in_use.saturating_sub(1);
    }

    /// A detached delivery, or a lane with this first record, waits for a slot, behind all others.
    pub(super) fn wait_for_slot(&mut self, work: Work) {
        if work.is_detached {
            self.detached.push_back(work);
        } else {
            self.waiting.push_back(work);
        }
    }

    /// How many lanes wait for a slot.
    pub(super) fn waiting_lanes(&self) -> usize {
        self.waiting.len()
    }

    /// Removes the lane that began to wait last.
    pub(super) fn take_last_waiting(&mut self) -> Option<Work> {
        self.waiting.pop_back()
    }

    /// Removes the lanes and deliveries of these partitions. Returns the detached deliveries.
    pub(super) fn take_waiting(&mut self, of: impl Fn(Partition) -> bool) -> VecDeque<Work> {
        self.waiting.retain(|first| !of(first.partition));
        let all = mem::take(&mut self.detached).into_iter();
        let (taken, kept) = all.partition(|work| of(work.partition));
        self.detached = kept;
        taken
    }

    fn has_free_slot(&self) -> bool {
        self.slots_in_use < self.settings.concurrency
    }

    fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.detached.is_empty()
    }

    pub(super) fn burst(&self) -> usize {
        self.burst
    }

    /// Every record of a burst completed: the next one may be twice as long.
    pub(super) fn burst_completed(&mut self) {
        self.burst = (self.burst * 2).min(self.max_burst);
    }

    /// The worker stopped a burst early: the handler had to wait for something.
    pub(super) fn burst_cut_short(&mut self) {
        self.burst = 1;
    }

    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        self.slots_in_use == 0 && !self.has_waiting()
    }
}
