//! [`Slots`]: the concurrency of one handler, and the length of a burst.

use std::{collections::VecDeque, sync::Arc};

use super::burst::Work;
use crate::record::Record;

/// The concurrency of one handler. The only place that grants and frees slots.
///
/// Slots are granted in the order of waiting: a lane that ended its burst waits behind the lanes
/// that wait already, so one busy key does not keep the others from running.
#[derive(Debug)]
pub(super) struct Slots {
    limit: u32,
    in_use: u32,
    /// How many records a lane may run with one slot now.
    burst: usize,
    max_burst: usize,
    /// Lanes that could run if there were a slot, by their first record. A lane is in here once,
    /// while it is `AwaitingSlot`.
    waiting: VecDeque<Arc<Record>>,
    /// Deliveries outside their lanes that wait for a slot.
    detached: VecDeque<Work>,
}

/// What gets a slot.
#[derive(Debug)]
pub(super) enum NextForSlot {
    Detached(Work),
    /// The lane of this record.
    Lane(Arc<Record>),
}

/// How a burst ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BurstEnd {
    /// Every record of it completed.
    Complete,
    /// The worker stopped early: the handler had to wait for something.
    CutShort,
}

impl Slots {
    pub(super) fn new(limit: u32, max_burst: usize) -> Self {
        Self {
            limit,
            in_use: 0,
            burst: 1,
            max_burst: max_burst.max(1),
            waiting: VecDeque::new(),
            detached: VecDeque::new(),
        }
    }

    /// Takes a slot, unless all are in use or something waits for one.
    pub(super) fn try_take(&mut self) -> bool {
        let is_free = self.in_use < self.limit && !self.has_waiting();
        self.in_use += u32::from(is_free);
        is_free
    }

    /// Gives a slot back. The caller grants it to the next.
    pub(super) fn free(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// Takes a slot for what waits for one: detached deliveries first, then lanes in the order in
    /// which they came. `None` if no slot is free or nothing waits.
    pub(super) fn next(&mut self) -> Option<NextForSlot> {
        if self.in_use >= self.limit {
            return None;
        }
        let detached = self.detached.pop_front().map(NextForSlot::Detached);
        let next = detached.or_else(|| self.waiting.pop_front().map(NextForSlot::Lane))?;
        self.in_use += 1;
        Some(next)
    }

    /// A lane waits for a slot, behind all that wait.
    pub(super) fn wait(&mut self, first: Arc<Record>) {
        self.waiting.push_back(first);
    }

    pub(super) fn wait_detached(&mut self, work: Work) {
        self.detached.push_back(work);
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.detached.is_empty()
    }

    /// How many lanes wait.
    pub(super) fn waiting_lanes(&self) -> usize {
        self.waiting.len()
    }

    /// The lane that came last leaves the queue.
    pub(super) fn take_last_waiting(&mut self) -> Option<Arc<Record>> {
        self.waiting.pop_back()
    }

    /// Lanes leave the queue unless they are kept.
    pub(super) fn retain_waiting(&mut self, is_kept: impl Fn(&Record) -> bool) {
        self.waiting.retain(|first| is_kept(first));
    }

    /// These detached deliveries leave the queue.
    pub(super) fn take_detached(
        &mut self,
        mut is_taken: impl FnMut(&Work) -> bool,
    ) -> impl Iterator<Item = Work> {
        let all = std::mem::take(&mut self.detached);
        let (taken, kept): (VecDeque<Work>, _) = all.into_iter().partition(|work| is_taken(work));
        self.detached = kept;
        taken.into_iter()
    }

    pub(super) fn burst(&self) -> usize {
        self.burst
    }

    /// The burst length doubles after a burst that ran to its end, and is one again after one that
    /// was cut short.
    pub(super) fn burst_ended(&mut self, how: BurstEnd) {
        self.burst = match how {
            BurstEnd::Complete => (self.burst * 2).min(self.max_burst),
            BurstEnd::CutShort => 1,
        };
    }

    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        self.in_use == 0 && !self.has_waiting()
    }
}
