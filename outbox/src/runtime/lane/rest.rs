//! Brief retries: a record that failed and is due again in a moment is tried again from memory.
//!
//! To write each such failure costs several times what the record itself does, and the row would
//! be changed again before anybody could look at it. So the record stays where it is, first in its
//! lane, which rests meanwhile; its handler's place is free for others. What is known of it beyond
//! what is written is lost in a crash, as if it had not been tried; whenever its key is written
//! for another reason (a longer delay, a pause, a hand-over, a stop) its failures are, too.

use std::{mem, sync::Arc, time::Duration};

use crate::runtime::lane::{HandlerIx, Lane, LaneSettings, Lanes, Work, row::failure};
use crate::{record::Record, retry::Decision};

/// So many failures of a record may be known to memory only: what crashes again and again is not
/// tried much more often than its policy says.
const UNWRITTEN: usize = 4;

/// A lane that goes on after this long. Goes back to [`Lanes::rested`] then; one that is dropped is
/// found again when the lane is written, or by who comes after a crash.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) delay: Duration,
    pub(crate) record: Arc<Record>,
    pub(crate) handler: HandlerIx,
    /// The attempt that is next.
    attempt: u32,
}

#[cfg(test)]
impl Rest {
    pub(crate) fn of(record: &Arc<Record>, handler: HandlerIx, delay: Duration) -> Self {
        Self {
            delay,
            record: Arc::clone(record),
            handler,
            attempt: 2,
        }
    }
}

impl LaneSettings {
    /// What just ran in this lane, and is its first record still, is tried again in a moment if it
    /// has no row and later records wait for it.
    pub(super) fn rest(&self, lane: &mut Lane, work: &Work, decision: &Decision) -> Option<Rest> {
        let Decision::RetryAt {
            delay, next, error, ..
        } = decision
        else {
            return None;
        };
        let handler = self.handlers.get(usize::from(work.handler))?;
        let first = lane.queue.front_mut()?;
        let written = first.stored || first.failures.len() >= UNWRITTEN;
        if *delay > self.brief || self.brief.is_zero() || written || !self.ordered {
            return None;
        }
        first.failures.push(failure(work, handler.id, error));
        first.attempt = *next;
        lane.rests = true;
        Some(Rest {
            delay: *delay,
            record: Arc::clone(&first.record),
            handler: work.handler,
            attempt: next.number,
        })
    }
}

impl Lanes {
    /// Lanes that go on in a moment.
    pub(crate) fn take_rests(&mut self) -> Vec<Rest> {
        mem::take(&mut self.rests)
    }

    /// The time of a lane has come, if it still rests.
    pub(crate) fn rested(&mut self, rest: &Rest) {
        let key = self.keys.get_mut(&*rest.record.key);
        let Some(lane) = key.and_then(|key| key.lane(rest.handler)) else {
            return;
        };
        let first = lane.queue.front();
        let same = first.is_some_and(|first| {
            (first.record.id, first.attempt.number) == (rest.record.id, rest.attempt)
        });
        if lane.rests && same {
            lane.rests = false;
            self.advance(&rest.record.key, rest.handler);
        }
    }
}
