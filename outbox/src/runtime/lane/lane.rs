//! [`Lane`]: the records of one key for one handler, in order.

use std::{
    collections::{VecDeque, vec_deque::Drain},
    num::NonZeroUsize,
};

use super::{Activity, Backlog, Burst, State as _, Work};
use crate::registry::HandlerIx;

/// How many records of a long queue stay when memory is full: as many as are loaded of a parked lane
/// at once.
pub(super) const KEEP_QUEUED: usize = 32;

/// The records of one key for one handler. In memory only while something of it is: the database
/// knows everything that a lane forgets. Every transition of its two states is one method.
#[derive(Debug)]
pub(super) struct Lane {
    handler: HandlerIx,
    activity: Activity,
    backlog: Backlog,
    /// Oldest first. What runs stays in front until it ended.
    queue: VecDeque<Work>,
    /// Changes of its rows that are not written yet. Its backlog is loaded only when there are none.
    unwritten_changes: u32,
    /// A row of this lane existed, or was about to, since the lane is in memory. A fetch under way
    /// may have seen the lane before our last write, so the lane stays until that fetch ended.
    had_rows: bool,
}

/// Takes records out of the queue of a lane.
pub(super) type TakeFromQueue = fn(&mut Lane) -> Drain<'_, Work>;

/// The one thing that a lane can do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    Wait,
    Run,
    Load,
    Block,
    Forget,
}

impl Lane {
    pub(super) fn new(handler: HandlerIx, backlog: Backlog) -> Self {
        Self {
            handler,
            activity: Activity::Idle,
            backlog,
            queue: VecDeque::new(),
            unwritten_changes: 0,
            had_rows: backlog != Backlog::None,
        }
    }

    /// What it can do next, in a partition that is open. [`advance`](super::Lanes::advance) does it.
    pub(super) fn next_step(&self, is_available: bool) -> NextStep {
        if self.activity != Activity::Idle {
            return NextStep::Wait;
        }
        if !self.queue.is_empty() {
            return NextStep::Run;
        }
        if self.unwritten_changes > 0 {
            return NextStep::Wait;
        }
        match self.backlog {
            Backlog::Parked if is_available => NextStep::Load,
            Backlog::Parked => NextStep::Block,
            Backlog::Loading { .. } => NextStep::Wait,
            Backlog::None | Backlog::Blocked => NextStep::Forget,
        }
    }

    /// Its first record waits for a slot: that record.
    pub(super) fn await_slot(&mut self) -> Option<Work> {
        let first = self.queue.front()?.clone();
        self.activity.set(Activity::AwaitingSlot);
        Some(first)
    }

    /// Starts a burst of at most `max` records with a slot that was taken for it.
    pub(super) fn start_burst(&mut self, max: usize) -> Option<Burst> {
        let mut works = self.queue.iter().take(max).cloned();
        let first = works.next()?;
        let rest: Vec<Work> = works.collect();
        let burst = NonZeroUsize::MIN.saturating_add(rest.len());
        self.activity.set(Activity::Running { burst });
        Some(Burst { first, rest })
    }

    /// The record that runs ended. Returns the record that runs next, with the same slot.
    pub(super) fn first_ended(&mut self, is_completed: bool) -> Option<i64> {
        let rest = NonZeroUsize::new(self.running_count().saturating_sub(1));
        self.queue.pop_front();
        self.activity.set(match rest.filter(|_| is_completed) {
            Some(burst) => Activity::Running { burst },
            None => Activity::Idle,
        });
        self.burst_records().next()
    }

    /// The rest of the burst was not started.
    pub(super) fn stop_burst(&mut self) {
        self.activity.set(Activity::Idle);
    }

    /// A record joins the end of the queue.
    pub(super) fn enqueue(&mut self, work: Work) {
        self.had_rows |= work.from_row;
        self.queue.push_back(work);
    }

    /// A record was parked behind the queue.
    pub(super) fn note_parked(&mut self) {
        self.note_change();
        self.backlog.set(match self.backlog {
            Backlog::None | Backlog::Parked => Backlog::Parked,
            Backlog::Loading { .. } => Backlog::Loading { grew: true },
            Backlog::Blocked => Backlog::Blocked,
        });
    }

    /// Something of it is to be written. Goes with [`change_written`](Self::change_written).
    pub(super) fn note_change(&mut self) {
        self.unwritten_changes += 1;
        self.had_rows = true;
    }

    pub(super) fn change_written(&mut self) {
        self.unwritten_changes = self.unwritten_changes.saturating_sub(1);
    }

    /// The next fetch loads its parked deliveries.
    pub(super) fn begin_loading(&mut self) {
        self.backlog.set(Backlog::Loading { grew: false });
    }

    /// Its parked deliveries were loaded: those that may run are in the queue. `is_blocked`: the
    /// first may not run now. `has_more`: others follow in the database.
    pub(super) fn loaded(&mut self, is_blocked: bool, has_more: bool) {
        let grew = self.backlog == Backlog::Loading { grew: true };
        if is_blocked {
            self.backlog.set(Backlog::Blocked);
        } else {
            self.unblock(has_more || grew);
        }
    }

    /// The delivery that blocked the lane is due, and is the next to run. `has_backlog`: others
    /// stand behind it. A lane that is not blocked has loaded it, or will: it joins the queue.
    pub(super) fn admit_due(&mut self, due: Work, has_backlog: bool) {
        if self.backlog != Backlog::Blocked {
            return self.enqueue(due);
        }
        self.had_rows = true;
        self.queue.insert(self.running_count(), due);
        self.unblock(has_backlog);
    }

    /// Nothing blocks the lane.
    pub(super) fn unblock(&mut self, has_backlog: bool) {
        self.backlog.set(if has_backlog {
            Backlog::Parked
        } else {
            Backlog::None
        });
    }

    /// The first delivery in the database must not run now. While a burst runs (its handler was
    /// just paused), the deliveries behind the burst are only parked.
    pub(super) fn block(&mut self) {
        self.backlog.set(if self.running_count() > 0 {
            Backlog::Parked
        } else {
            Backlog::Blocked
        });
    }

    /// Its partition is closing, and rows of it left memory.
    pub(super) fn closed(&mut self) {
        self.note_change();
        self.backlog.set(Backlog::Parked);
    }

    /// Its partition is open again. What was being loaded was thrown away.
    pub(super) fn reopened(&mut self) {
        if self.is_loading() {
            self.backlog.set(Backlog::Parked);
        }
    }

    /// The lane waits behind a delivery in the database, and everything that does not run leaves the
    /// queue. The caller takes the lane out of the queue for slots.
    pub(super) fn block_queue(&mut self) -> Drain<'_, Work> {
        self.block();
        self.note_change();
        self.drain_not_running()
    }

    /// Everything that does not run leaves the queue. The caller takes the lane out of the queue
    /// for slots.
    pub(super) fn drain_not_running(&mut self) -> Drain<'_, Work> {
        if self.activity == Activity::AwaitingSlot {
            self.activity.set(Activity::Idle);
        }
        self.queue.drain(self.running_count()..)
    }

    /// How many records are in the queue behind the burst and behind the first `keep`.
    pub(super) fn tail_len(&self, keep: usize) -> usize {
        let kept = self.running_count().max(keep);
        self.queue.len().saturating_sub(kept)
    }

    /// The end of a long queue leaves it. The lane keeps its slot, or its place among those that
    /// wait for one.
    pub(super) fn park_tail(&mut self) -> Drain<'_, Work> {
        self.note_parked();
        let kept = self.queue.len() - self.tail_len(KEEP_QUEUED);
        self.queue.drain(kept..)
    }

    /// Everything in the queue has a delivery row now, or is about to.
    pub(super) fn got_rows(&mut self) {
        self.had_rows = true;
    }
}

/// Questions.
impl Lane {
    pub(super) fn handler(&self) -> HandlerIx {
        self.handler
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub(super) fn is_loading(&self) -> bool {
        matches!(self.backlog, Backlog::Loading { .. })
    }

    pub(super) fn is_awaiting_slot(&self) -> bool {
        self.activity == Activity::AwaitingSlot
    }

    pub(super) fn had_rows(&self) -> bool {
        self.had_rows || self.backlog != Backlog::None
    }

    pub(super) fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// How many records of the queue, from its front, make up the burst that runs.
    fn running_count(&self) -> usize {
        match self.activity {
            Activity::Running { burst } => burst.get(),
            Activity::Idle | Activity::AwaitingSlot => 0,
        }
    }

    /// The record with this id is the first of the burst, so it has certainly started.
    pub(super) fn is_running(&self, id: i64) -> bool {
        self.burst_records().next() == Some(id)
    }

    /// The records of the burst that runs: each of them may have started.
    pub(super) fn burst_records(&self) -> impl Iterator<Item = i64> {
        let burst = self.queue.iter().take(self.running_count());
        burst.map(|work| work.record.id)
    }

    /// Nothing of it is in memory that the database does not know.
    pub(super) fn is_forgettable(&self) -> bool {
        self.next_step(true) == NextStep::Forget
    }
}
