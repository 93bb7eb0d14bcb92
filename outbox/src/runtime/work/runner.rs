//! Invocations: started, and what they answered.

use std::sync::Arc;

use hashbrown::hash_map::Entry;
use tokio::time::Instant;

use crate::runtime::{
    event_loop::Run,
    ownership::permit::StartPermit,
    work::pool::{Finished, StartContext},
};
use crate::{
    outbox::clock::{Clock as _, SystemClock},
    registry::HandlerIx,
    store::Database,
};

/// Of an invocation that was started and has not been answered.
#[derive(Debug, Clone, Copy)]
pub(in crate::runtime) struct Started {
    part: u16,
    /// The [`StartContext::number`] it was started under. An answer of another one is from before its
    /// partition was lost, and came back.
    number: u64,
}

impl<Db: Database> Run<Db> {
    /// Starts what the lanes say, unless another process may own it by now.
    pub(in crate::runtime) fn start_work(&mut self, now: Instant) {
        if self.engine.has_bursts() {
            self.confirm(now);
        }
        let trusted = self.session().is_trusted(self.confirmed, now);
        if !trusted || !self.engine.leases().are_valid(now) {
            return;
        }
        let turns = self.engine.take_bursts();
        if turns.is_empty() {
            return;
        }
        self.starts += 1;
        let number = self.starts;
        let terms = Arc::new(StartContext {
            number,
            fence: self.engine.leases().fence(),
            permit: StartPermit {
                until: self.engine.leases().valid_until(),
                session: self.session.clone(),
                confirmed: self.confirmed,
            },
        });
        let started = turns.iter().map(|turn| {
            let (first, part) = (&turn.first, turn.first.part);
            ((first.record.id, first.handler), Started { part, number })
        });
        self.running.extend(started);
        self.crew.start(turns, &terms);
    }

    pub(in crate::runtime) fn handlers_finished(&mut self, answers: &mut Vec<Finished>) {
        let now = SystemClock.now();
        for Finished { work, number, end } in answers.drain(..) {
            let Entry::Occupied(started) = self.running.entry((work.record.id, work.handler))
            else {
                continue;
            };
            if started.get().number != number {
                continue;
            }
            let started = started.remove();
            let Some(end) = end else {
                self.engine.on_not_started(work);
                continue;
            };
            self.meters.answered(&work, &end, now);
            if let Some(next) = self.engine.on_finished(&work, end) {
                self.running.insert((next, work.handler), started);
            }
        }
    }

    /// Stops invocations. Those whose answer is under way are stopped too: it will be ignored.
    pub(in crate::runtime) fn stop_running(&mut self, of: impl Fn(u16) -> bool) -> Vec<HandlerIx> {
        self.crew.stop(&of);
        let stopped = self.running.extract_if(|_, started| of(started.part));
        stopped.map(|((_, handler), _)| handler).collect()
    }
}
