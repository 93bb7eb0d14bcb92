//! What a handler decided becomes what is to be written, and the lane goes on.

use crate::runtime::lane::{
    AttemptEnd, HandlerIx, Item, Lanes, Stand, Work,
    row::{completed, failed, failure_row, waiting},
};
use crate::{
    record::DeliveryStatus,
    store::{DeliveryRow, FailureRow, micros},
};

impl Lanes {
    /// An invocation ended. If its lane's turn goes on: the record that runs now.
    pub(crate) fn finished(&mut self, work: &Work, end: AttemptEnd) -> Option<i64> {
        let handler = work.handler;
        if work.is_detached {
            self.write(work, true, end);
            self.unwritten.deliveries.push((work.record.id, handler));
        } else if let Some(next) = self.finished_in_lane(work, end) {
            return Some(next);
        }
        self.leave_place(handler);
        self.turn_ended(work.part, &work.record.key, handler);
        self.fill_places(handler);
        None
    }

    /// The record that runs now. None if the lane's turn has ended, or it is not in memory, because
    /// its partition was lost.
    fn finished_in_lane(&mut self, work: &Work, end: AttemptEnd) -> Option<i64> {
        let id = work.record.id;
        let key = self.keys.get_mut(&*work.record.key)?;
        let lane = key.lane(work.handler)?;
        if lane.running()?.record.id != id {
            return None;
        }
        let stored = lane.queue.pop_front()?.stored;
        lane.turn -= 1;
        if !end.is_completed() {
            // Nothing behind it was begun.
            lane.turn = 0;
        } else if lane.turn == 0
            && let Some(places) = self.handlers.get_mut(usize::from(work.handler))
        {
            places.turn = (places.turn * 2).min(self.settings.longest_turn);
        }

        let next = lane.running().map(|item| item.record.id);
        if !stored && matches!(end, AttemptEnd::Handled | AttemptEnd::Skipped) {
            let at = key.hot.iter().position(|hot| hot.record.id == id)?;
            let hot = key.hot.get_mut(at)?;
            hot.unfinished.retain(|handler| *handler != work.handler);
            hot.begun = true;
            if hot.unfinished.is_empty() {
                key.hot.remove(at);
                self.unwritten.batch.done.push(id);
                self.unwritten.records.push(id);
            }
            return next;
        }
        if !stored {
            key.split(&self.settings, &mut self.unwritten, &mut self.deliveries);
        }
        let blocks = self.write(work, stored, end);
        self.unwritten.deliveries.push((id, work.handler));
        if blocks {
            self.block(&work.record.key, work.handler);
        } else {
            // Read before it is written, the lane would seem to be held up by this record.
            let lane = self.keys.get_mut(&*work.record.key)?.lane(work.handler)?;
            lane.settling += 1;
            let name = (work.record.key.as_str().into(), work.handler);
            self.unwritten.lanes.push(name);
        }
        next
    }

    /// The rows of a delivery that ended or failed. Whether its lane waits behind it.
    fn write(&mut self, work: &Work, stored: bool, end: AttemptEnd) -> bool {
        let Some(settings) = self.settings(work.handler) else {
            return false;
        };
        let (id, ordered, skips) = (settings.id, self.settings.ordered, settings.skips);
        // Still in its lane: one that is tried alone has let the others pass.
        let holds_lane = ordered && !work.is_detached;
        let row = waiting(work.part, &work.record, id, work.attempt);
        let row = match end {
            AttemptEnd::Handled | AttemptEnd::Skipped => completed(row),
            AttemptEnd::FellBack { failure, .. } => {
                // The failure is in the history although the fallback completed the record.
                self.remember(failure_row(work, id, failure));
                completed(row)
            }
            AttemptEnd::Retry {
                delay,
                next,
                failure,
            } => {
                let failure = failure_row(work, id, failure);
                let row = failed(row, &failure);
                self.remember(failure);
                DeliveryRow {
                    status: DeliveryStatus::Retrying,
                    blocking: holds_lane,
                    attempt: next.number,
                    failure_count: next.failure_count,
                    first_failed_at: next.first_failed_at.map(|at| at.as_microsecond()),
                    delay: Some(micros(delay)),
                    ..row
                }
            }
            AttemptEnd::Failed { failure, .. } => {
                let failure = failure_row(work, id, failure);
                let row = failed(row, &failure);
                self.remember(failure);
                DeliveryRow {
                    status: DeliveryStatus::Failed,
                    blocking: holds_lane && !skips,
                    ..row
                }
            }
            AttemptEnd::NoHandler => row,
        };
        let blocks = row.blocking;
        let batch = &mut self.unwritten.batch;
        // Just split: its row is among the last ones, and can be what it is to be from the start.
        let same = |new: &&mut DeliveryRow| (new.record_id, new.handler) == (row.record_id, id);
        let new = match stored || row.status == DeliveryStatus::Completed {
            true => None,
            false => batch.split_rows.iter_mut().rev().find(same),
        };
        match new {
            Some(new) => *new = row,
            None => batch.changed.push(row),
        }
        blocks
    }

    fn remember(&mut self, failure: FailureRow) {
        self.unwritten.batch.failures.push(failure);
    }

    /// The lane waits behind what was just written. Its queue has rows, and leaves memory.
    pub(super) fn block(&mut self, key: &str, handler: HandlerIx) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        entry.split(&self.settings, &mut self.unwritten, &mut self.deliveries);
        let Some(lane) = entry.lane(handler) else {
            return;
        };
        // One that runs (its handler was just paused) is first; when it ends the rest is read.
        lane.stand = match lane.turn {
            1.. => Stand::Behind,
            0 => Stand::Blocked,
        };
        lane.settling += 1;
        lane.lingers = true;
        let queue = lane.take_waiting();
        let left = queue.map(|Item { record, .. }| (record.id, handler));
        self.unwritten.deliveries.extend(left);
        self.unwritten.lanes.push((key.into(), handler));
    }
}
