//! [`Lane`]: the records of one key for one handler, in order.

use std::{
    collections::{VecDeque, vec_deque::Drain},
    num::NonZeroUsize,
};

use super::{Activity, Backlog, Burst, State as _, Work};
use crate::registry::HandlerIx;

/// When memory is full, the first 32 records of a long queue stay: one fetch loads as many of a
/// parked lane.
pub(super) const KEEP_QUEUED: usize = 32;

/// The records of one key for one handler. A lane that memory does not need is forgotten, because the
/// database has all of it. Every transition of its two states is one method.
#[derive(Debug)]
pub(super) struct Lane {
    handler: HandlerIx,
    activity: Activity,
    backlog: Backlog,
    /// Oldest first. Running records stay in front until they end.
    queue: VecDeque<Work>,
    /// Unwritten changes of its rows. Its backlog is loaded only when there are none.
    unwritten_changes: u32,
    /// The lane had a row, or was about to get one, at some time since it is in memory. A fetch
    /// under way may have read it before the last write, so the lane stays until that fetch ends.
    had_rows: bool,
}

/// Takes records out of the queue of a lane.
pub(super) type TakeFromQueue = fn(&mut Lane) -> Drain<'_, Work>;

/// The one next step of a lane.
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

    /// The next step, if its partition is open. [`advance`](super::Lanes::advance) takes it.
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

    /// Waits for a slot. Returns the first record, which stands for the lane.
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

    /// The running record ended. Returns the id of the record that runs next with the same slot.
    pub(super) fn first_ended(&mut self, is_completed: bool) -> Option<i64> {
        let rest = NonZeroUsize::new(self.running_count().saturating_sub(1));
        self.queue.pop_front();
        self.activity.set(match rest.filter(|_| is_completed) {
            Some(burst) => Activity::Running { burst },
            None => Activity::Idle,
        });
        self.burst_records().next()
    }

    /// The worker did not start the rest of the burst.
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

    /// A change of its rows is to be written; [`change_written`](Self::change_written) follows.
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

    /// Its parked deliveries were loaded, and the runnable ones are in the queue. `is_blocked`: the
    /// first must not run now. `has_more`: others follow in the database.
    pub(super) fn loaded(&mut self, is_blocked: bool, has_more: bool) {
        let grew = self.backlog == Backlog::Loading { grew: true };
        if is_blocked {
            self.backlog.set(Backlog::Blocked);
        } else {
            self.unblock(has_more || grew);
        }
    }

    /// The delivery that blocked the lane is due and runs next. `has_backlog`: others follow it. A
    /// lane that is not blocked has loaded it, or is about to, so it joins the queue.
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

    /// Its partition is closing, and some of its rows left memory.
    pub(super) fn closed(&mut self) {
        self.note_change();
        self.backlog.set(Backlog::Parked);
    }

    /// Its partition is open again. Rows that were being loaded were ignored.
    pub(super) fn reopened(&mut self) {
        if self.is_loading() {
            self.backlog.set(Backlog::Parked);
        }
    }

    /// The lane waits behind a delivery in the database, and all records that do not run leave the
    /// queue. The caller removes the lane from the queue for slots.
    pub(super) fn block_queue(&mut self) -> Drain<'_, Work> {
        self.block();
        self.note_change();
        self.drain_not_running()
    }

    /// All records that do not run leave the queue. The caller removes the lane from the queue for
    /// slots.
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

    /// Removes the end of a long queue. The lane keeps its slot, or its position among the lanes
    /// that wait for one.
    pub(super) fn park_tail(&mut self) -> Drain<'_, Work> {
        self.note_parked();
        let kept = self.queue.len() - self.tail_len(KEEP_QUEUED);
        self.queue.drain(kept..)
    }

    /// Every record in the queue has a delivery row, or is about to get one.
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

    /// Whether this record is the first of the burst, so that it has certainly started.
    pub(super) fn is_running(&self, id: i64) -> bool {
        self.burst_records().next() == Some(id)
    }

    /// The ids of the running burst. Each of its records may have started.
    pub(super) fn burst_records(&self) -> impl Iterator<Item = i64> {
        let burst = self.queue.iter().take(self.running_count());
        burst.map(|work| work.record.id)
    }

    /// Whether the database has everything that memory has of this lane.
    pub(super) fn is_forgettable(&self) -> bool {
        self.next_step(true) == NextStep::Forget
    }
}
