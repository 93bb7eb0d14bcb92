//! The second door: what workers say about invocations.

use super::{
    attempt_end::AttemptEnd, burst::Work, lane::BurstProgress, lanes::Lanes, rows::rows_after,
    slots::BurstEnd,
};
use crate::registry::HandlerIx;

impl Lanes {
    /// An invocation ended. The id of the record that runs next in the same burst, if one does.
    pub(crate) fn on_finished(&mut self, work: &Work, end: AttemptEnd) -> Option<i64> {
        let handler = work.handler;
        if work.is_detached {
            self.add_outcome(work, true, end);
            self.outgoing.forget_delivery(work.record.id, handler);
        } else {
            if let Some(next) = self.finished_in_lane(work, end) {
                return Some(next);
            }
            self.burst_ended(work.part, &work.record.key, handler);
        }
        self.free_slot(handler);
        None
    }

    /// The record that runs next. `None` if the burst has ended, or the lane is not in memory because
    /// its partition was lost.
    fn finished_in_lane(&mut self, work: &Work, end: AttemptEnd) -> Option<i64> {
        let (id, handler) = (work.record.id, work.handler);
        let key = self.keys.get_mut(&*work.record.key)?;
        let lane = key.lane(handler)?;
        let (ended, progress) = lane.first_ended(id, end.is_completed())?;
        let next = match progress {
            BurstProgress::Continues { next } => Some(next),
            BurstProgress::Complete => {
                let slots = self.handlers[handler].slots_mut();
                slots.burst_ended(BurstEnd::Complete);
                None
            }
            BurstProgress::Stopped => None,
        };
        if !ended.has_row {
            if matches!(end, AttemptEnd::Handled | AttemptEnd::Skipped) {
                if key.completed_by(id, handler) {
                    self.outgoing.complete_record(id);
                }
                return next;
            }
            key.split(&self.handlers, &mut self.outgoing, &mut self.memory);
        }
        let is_blocked = self.add_outcome(work, ended.has_row, end);
        self.outgoing.forget_delivery(id, handler);
        if is_blocked {
            self.block_lane(&work.record.key, handler);
        } else {
            // Loaded before this is written, the lane would seem to be blocked by this record.
            self.lane(&work.record.key, handler)?.note_change();
            self.outgoing.change_lane(&work.record.key, handler);
        }
        next
    }

    /// Adds the rows of a delivery that ended or failed. Whether its lane waits behind it.
    fn add_outcome(&mut self, work: &Work, has_row: bool, end: AttemptEnd) -> bool {
        let handler = &self.handlers[work.handler];
        // A detached one has let the others pass.
        let holds_lane = self.stop_on_failure && !work.is_detached;
        let (row, failure) =
            rows_after(work, handler.id(), end, holds_lane, handler.skips_failed());
        failure
            .into_iter()
            .for_each(|failure| self.outgoing.add_failure(failure));
        let is_blocked = row.blocking;
        self.outgoing.set_delivery(row, !has_row);
        is_blocked
    }

    /// An invocation was not started: this process may no longer own it, or the worker ended its
    /// burst. It is the first of its lane again.
    pub(crate) fn on_not_started(&mut self, work: Work) {
        let (id, handler, partition) = (work.record.id, work.handler, work.part);
        if work.is_detached {
            if self.is_closing(partition) || !self.handlers[handler].is_available() {
                // It is still due in the database.
                self.outgoing.forget_delivery(id, handler);
            } else {
                self.handlers[handler].slots_mut().wait_detached(work);
            }
        } else if self
            .lane(&work.record.key, handler)
            .is_some_and(|lane| lane.stop_burst(id))
        {
            let slots = self.handlers[handler].slots_mut();
            slots.burst_ended(BurstEnd::CutShort);
            self.burst_ended(partition, &work.record.key, handler);
        }
        self.free_slot(handler);
    }

    /// The lane does what it can do next, behind the lanes that wait for a slot. What was in the
    /// burst and was not started leaves memory if the partition was closed or the handler paused
    /// meanwhile, like everything that waited then.
    fn burst_ended(&mut self, partition: u16, key: &str, handler: HandlerIx) {
        let lane = self.lane(key, handler);
        let is_queued = lane.is_some_and(|lane| lane.queue_len() > 0);
        if is_queued && self.is_closing(partition) {
            self.close(&[partition]);
        } else if is_queued && !self.handlers[handler].is_available() {
            self.block_lane(key, handler);
        } else {
            self.advance(key, handler);
        }
    }
}
