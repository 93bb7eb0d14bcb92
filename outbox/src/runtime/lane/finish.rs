//! The second input: workers report the results of invocations.

use super::Lanes;
use crate::runtime::lane::{AttemptEnd, Lane, Work, rows::rows_after};

impl Lanes {
    /// An invocation ended. Returns the id of the record that runs next in the same burst, if any.
    pub(crate) fn on_finished(&mut self, work: &Work, end: AttemptEnd) -> Option<i64> {
        if work.is_detached {
            self.add_outcome(work, false, end);
            self.outgoing.forget_delivery(work.record.id, work.handler);
        } else {
            if let Some(next) = self.finished_in_lane(work, end) {
                return Some(next);
            }
            self.burst_ended(work);
        }
        self.free_slot(work.handler);
        None
    }

    /// Returns the record that runs next. `None` if the burst has ended, or if the lane is not in
    /// memory because its partition was lost.
    fn finished_in_lane(&mut self, work: &Work, end: AttemptEnd) -> Option<i64> {
        let (id, handler) = (work.record.id, work.handler);
        let key = self.keys.get_mut(&*work.record.key)?;
        let lane = key.lane(handler).filter(|lane| lane.is_running(id))?;
        let next = lane.first_ended(end.is_completed());
        if end.is_completed() && next.is_none() {
            self.handlers[handler].burst_completed();
        }
        let needs_no_row = matches!(end, AttemptEnd::Handled | AttemptEnd::Skipped);
        if needs_no_row && let Some(is_complete) = key.completed_by(id, handler) {
            if is_complete {
                self.outgoing.complete_record(id);
            }
            return next;
        }
        let is_new = key.is_whole(id);
        if is_new {
            key.split(&self.handlers, &mut self.outgoing, &mut self.deliveries);
        }
        let is_blocked = self.add_outcome(work, is_new, end);
        self.outgoing.forget_delivery(id, handler);
        if is_blocked {
            self.park(&work.record.key, handler, Lane::block_queue);
        } else {
            // If the lane were loaded before this is written, this record would seem to block it.
            self.lane(&work.record.key, handler)?.note_change();
            self.outgoing.change_lane(&work.record.key, handler);
        }
        next
    }

    /// Adds the rows of a delivery that ended or failed. `is_new`: its record was split just now.
    /// Returns whether its lane waits behind it.
    fn add_outcome(&mut self, work: &Work, is_new: bool, end: AttemptEnd) -> bool {
        let handler = self.handlers[work.handler].settings();
        // The lane does not wait for a detached delivery.
        let holds_lane = self.stop_on_failure && !work.is_detached;
        let (row, failure) = rows_after(work, handler.id, end, holds_lane, handler.skips_failed);
        let is_blocked = row.blocking;
        self.outgoing.set_delivery(row, failure, is_new);
        is_blocked
    }

    /// An invocation was not started, because this process may no longer own its partition, or
    /// because the worker ended the burst early. Its record is the first of its lane again.
    pub(crate) fn on_not_started(&mut self, work: Work) {
        let (id, handler) = (work.record.id, work.handler);
        if work.is_detached {
            if self.is_closing(work.partition) || !self.is_available(handler) {
                // It is still due in the database.
                self.outgoing.forget_delivery(id, handler);
            } else {
                self.handlers[handler].wait_for_slot(work);
            }
        } else if let Some(lane) = self.lane(&work.record.key, handler)
            && lane.is_running(id)
        {
            lane.stop_burst();
            self.handlers[handler].burst_cut_short();
            self.burst_ended(&work);
        }
        self.free_slot(handler);
    }

    /// Takes the next step of the lane; it waits for a slot behind the other lanes. If the
    /// partition was closed or the handler paused meanwhile, the records of the burst that were not
    /// started leave memory, as all waiting records did then.
    fn burst_ended(&mut self, work: &Work) {
        let (key, handler) = (&*work.record.key, work.handler);
        let (is_closing, is_available) =
            (self.is_closing(work.partition), self.is_available(handler));
        // Checked first, because looking up the lane costs more.
        let may_leave = is_closing || !is_available;
        if !may_leave
            || self
                .lane(key, handler)
                .is_none_or(|lane| lane.queue_len() == 0)
        {
            self.advance(key, handler);
        } else if is_closing {
            self.close(&[work.partition]);
        } else {
            self.park(key, handler, Lane::block_queue);
        }
    }
}
