//! Writing: one batch at a time, in a task that gives its connection back when it is written.

use std::time::Duration;

use tokio::time::Instant;

use crate::runtime::event_loop::Run;
use crate::{
    runtime::{lane::OutgoingBatch, settle::settler::Settler},
    store::Database,
};

/// What the writing task gives back.
pub(in crate::runtime) struct Written<Db: Database> {
    pub(in crate::runtime) settler: Settler<Db>,
    pub(in crate::runtime) unwritten: OutgoingBatch,
}

/// While others run, what is done waits for so many more of them, so that one statement says it of
/// all ..
const TOGETHER: usize = 1024;
/// .. or until this long after the last batch was written.
pub(in crate::runtime) const LINGER: Duration = Duration::from_millis(2);

impl<Db: Database> Run<Db> {
    /// Writes what is to be written, unless more of the same will come in a moment.
    pub(in crate::runtime) fn start_writing(&mut self, now: Instant) {
        let few = self.engine.completions() < TOGETHER;
        let soon = now.duration_since(self.wrote_at) < LINGER;
        self.lingers =
            few && soon && !self.running.is_empty() && self.engine.has_only_completions();
        if !self.lingers {
            self.write_now();
        }
    }

    pub(in crate::runtime) fn write_now(&mut self) {
        if self.settler.is_none() || !self.engine.has_batch() {
            return;
        }
        let offset = self.outbox.inner.offset();
        let (Some(mut settler), Some(unwritten)) =
            (self.settler.take(), self.engine.take_batch(offset))
        else {
            return;
        };
        let fence = self.engine.leases().fence();
        self.writing = Some(tokio::spawn(async move {
            settler.write(&fence, unwritten.batch()).await;
            Written { settler, unwritten }
        }));
    }

    pub(in crate::runtime) fn wrote(&mut self, written: Option<Written<Db>>) {
        self.writing = None;
        self.wrote_at = Instant::now();
        match written {
            Some(Written { settler, unwritten }) => {
                self.settler = Some(settler);
                self.meters.wrote(unwritten.batch());
                // Not before it is written: a fetch in between would find nothing.
                if let Some(delay) = unwritten.batch().first_due() {
                    self.agenda.due_in(Instant::now(), delay);
                }
                self.engine.on_written(unwritten);
            }
            None => self.begin_anew(),
        }
    }
}
