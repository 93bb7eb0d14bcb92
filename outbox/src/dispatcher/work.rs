//! Invocations: started in tasks of their own, and what they answered.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use tokio::{task::AbortHandle, time::Instant};

use super::{permit::Permit, run::Run, transactional::AttemptOf};
use crate::{
    Database, Decision, FailedBecause, Panicked,
    lane::{HandlerIx, Work},
};

/// What came of an invocation: none if it was not begun.
pub(super) type Answered = (Work, Option<Decision>);

pub(super) struct Started {
    pub(super) part: u16,
    pub(super) task: AbortHandle,
}

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
        let fence = self.engine.leases.fence();
        let permit = Arc::new(Permit {
            until: self.engine.leases.valid_until(),
            session: self.session.clone(),
            confirmed: self.confirmed,
        });
        for work in works {
            let inner = Arc::clone(&self.outbox.inner);
            let finished = self.finished.clone();
            let (id, part) = ((work.record.id, work.handler), work.part);
            let (fence, permit) = (Arc::clone(&fence), Arc::clone(&permit));
            let task = tokio::spawn(async move {
                let Some(handler) = inner.registry.entries().get(usize::from(work.handler)) else {
                    return;
                };
                let attempt = AttemptOf {
                    inner: &inner,
                    handler,
                    fence: &fence,
                    work: &work,
                    permit: Some(&permit),
                };
                // What the handler does is caught inside; this is for what stands around it.
                let decision = AssertUnwindSafe(attempt.dispatch()).catch_unwind().await;
                let decision = decision.unwrap_or_else(|panic| {
                    Some(Decision::Failed {
                        error: Panicked::with(&*panic),
                        because: FailedBecause::PolicyPanicked,
                    })
                });
                // The loop has ended if nobody takes it; the record is delivered again.
                let _ = finished.send((work, decision));
            });
            let task = task.abort_handle();
            self.running.insert(id, Started { part, task });
        }
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
        let mut stopped = Vec::new();
        self.running.retain(|(_, handler), started| {
            let stop = of(started.part);
            if stop {
                started.task.abort();
                stopped.push(*handler);
            }
            !stop
        });
        stopped
    }
}
