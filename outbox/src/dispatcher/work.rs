//! Invocations: started, and what they answered.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    crew::{Answered, Terms},
    permit::Permit,
    run::Run,
};
use crate::{Database, Decision, lane::HandlerIx};

impl<Db: Database> Run<Db> {
    /// Starts what the lanes say, unless another process may own it by now.
    pub(super) fn start_work(&mut self, now: Instant) {
        let trusted = self.session().is_trusted(self.confirmed, now);
        if !trusted || !self.engine.leases.are_valid(now) {
            return;
        }
        let works = self.engine.lanes.take_work();
        if works.is_empty() {
            return;
        }
        let terms = Arc::new(Terms {
            fence: self.engine.leases.fence(),
            permit: Permit {
                until: self.engine.leases.valid_until(),
                session: self.session.clone(),
                confirmed: self.confirmed,
            },
        });
        let started = works
            .iter()
            .map(|work| ((work.record.id, work.handler), work.part));
        self.running.extend(started);
        self.crew.start(works, &terms);
    }

    pub(super) fn handlers_finished(&mut self, answers: &mut Vec<Answered>) {
        for (work, decision) in answers.drain(..) {
            if self
                .running
                .remove(&(work.record.id, work.handler))
                .is_none()
            {
                continue;
            }
            let Some(decision) = decision else {
                self.engine.lanes.not_begun(work);
                continue;
            };
            if let Decision::Failed { because, .. } = &decision {
                let handler = self.outbox.inner.registry.entries();
                let handler = handler.get(usize::from(work.handler));
                tracing::warn!(
                    handler = handler.map(|entry| entry.id()),
                    record = work.record.id,
                    attempt = work.attempt.number,
                    %because,
                    "a record failed for good; it stays until it is replayed or discarded"
                );
            }
            self.engine.lanes.finished(&work, decision);
        }
    }

    /// Stops invocations. Those whose answer is under way are stopped too: it will be ignored.
    pub(super) fn stop_running(&mut self, of: impl Fn(u16) -> bool) -> Vec<HandlerIx> {
        self.crew.stop(&of);
        let stopped = self.running.extract_if(|_, part| of(*part));
        stopped.map(|((_, handler), _)| handler).collect()
    }
}
