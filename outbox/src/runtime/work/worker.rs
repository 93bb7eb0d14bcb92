//! [`Worker`]: takes a burst and runs it, record by record.
//!
//! Bursts: a worker runs up to 32 records of a lane without a round trip to the event loop in
//! between. With them the benchmark `drain-hot-key` takes 1.15 times as long as `drain` (November
//! 2026); without them every record of a hot key costs an iteration of the event loop.

use std::{future::poll_fn, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::{sync::mpsc::UnboundedSender, task::yield_now, time::Instant};

use super::{
    attempt::HandlerAttempt,
    pool::{PoolShared, WorkerId},
};
use crate::{
    handler::Panicked,
    outbox::Shared,
    retry::{Decision, FailedBecause},
    runtime::{
        lane::{AttemptEnd, Burst, Work},
        meters::HandlerDurations,
        ownership::StartPermit,
    },
    store::{Database, Fence},
};

/// A burst ends after 1 ms, because other lanes wait for its slot.
const BURST_TIME: Duration = Duration::from_millis(1);
/// After 32 invocations a worker gives its thread to other tasks.
const YIELD_EVERY: u32 = 32;

/// Unique per call of [`Runner::start`](super::runner::Runner::start). A result with an older id is
/// from before its partition was lost and gained again; the runner ignores it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StartId(pub(super) u64);

/// The conditions under which a burst was started.
#[derive(Debug)]
pub(super) struct StartContext {
    pub(super) start_id: StartId,
    pub(super) fence: Arc<Fence>,
    pub(super) permit: StartPermit,
}

/// The result of an invocation. `end`: `None` if it was not started.
pub(super) struct Finished {
    pub(super) work: Work,
    pub(super) start_id: StartId,
    pub(super) end: Option<AttemptEnd>,
}

/// The tools with which workers make attempts and report them.
pub(super) struct WorkerTools<Db: Database> {
    outbox: Arc<Shared<Db>>,
    durations: HandlerDurations,
    results: UnboundedSender<Finished>,
}

/// A task of the pool. Runs one burst after the other until the pool does not need it or cancels
/// it. If it is dropped while a handler waits, the invocation ends there.
pub(super) struct Worker<Db: Database> {
    id: WorkerId,
    pool: Arc<PoolShared<Db>>,
    /// The last burst had to wait in a handler. The pool has replaced this worker meanwhile.
    has_waited: bool,
    since_yield: u32,
}

impl<Db: Database> WorkerTools<Db> {
    pub(super) fn new(outbox: Arc<Shared<Db>>, results: UnboundedSender<Finished>) -> Self {
        Self {
            durations: HandlerDurations::new(&outbox.registry),
            outbox,
            results,
        }
    }

    async fn run_attempt(&self, work: &Work, context: &StartContext) -> Option<AttemptEnd> {
        let handler = self.outbox.registry.entry(work.handler);
        let attempt = HandlerAttempt {
            inner: &self.outbox,
            handler,
            fence: &context.fence,
            work,
            permit: Some(&context.permit),
        };
        let started_at = self.durations.start();
        // `run` catches a panic of the handler; this catches one of the code around it.
        let decision = AssertUnwindSafe(attempt.run()).catch_unwind().await;
        if !matches!(decision, Ok(None)) {
            self.durations.ended(work.handler, started_at);
        }
        let decision = decision.unwrap_or_else(|panic| {
            let decision = Decision::Failed {
                error: Panicked::with(&*panic),
                because: FailedBecause::PolicyPanicked,
            };
            let (log, now) = (&handler.log, self.outbox.clock.now());
            log.decided(handler, &work.record, work.attempt, &decision, now);
            Some(decision)
        });
        let decision = decision?;
        // Not one async function for both: all other attempts would pay for a second future.
        match attempt.failure_hook(&decision) {
            Some(hook) => Some(attempt.end_after_hook(hook, decision).await),
            None => Some(attempt.end(decision)),
        }
    }

    fn report(&self, work: Work, context: &StartContext, end: Option<AttemptEnd>) {
        // Without a receiver the event loop has ended; the record is delivered again.
        let _ = self.results.send(Finished {
            work,
            start_id: context.start_id,
            end,
        });
    }
}

impl<Db: Database> Worker<Db> {
    pub(super) fn new(id: WorkerId, pool: Arc<PoolShared<Db>>) -> Self {
        Self {
            id,
            pool,
            has_waited: false,
            since_yield: 0,
        }
    }

    pub(super) async fn run(mut self) {
        while let Some((burst, context)) = self.pool.next_burst(self.id, self.has_waited) {
            self.has_waited = false;
            self.run_burst(burst, &context).await;
        }
    }

    /// Each record starts only after the one before it completed. The worker reports the first
    /// record that it does not start; the lane then knows that the ones behind it were not started
    /// either.
    async fn run_burst(&mut self, burst: Burst, context: &StartContext) {
        let started_at = Instant::now();
        let (mut next, mut rest) = (Some(burst.first), burst.rest.into_iter());
        while let Some(work) = next {
            let end = self.run_one(&work, context).await;
            let is_completed = end.as_ref().is_some_and(AttemptEnd::is_completed);
            self.pool.tools().report(work, context, end);
            self.since_yield += 1;
            if self.since_yield == YIELD_EVERY {
                self.since_yield = 0;
                yield_now().await;
            }
            next = rest.next().filter(|_| is_completed);
            let has_to_stop = |_: &mut Work| {
                self.has_waited
                    || started_at.elapsed() > BURST_TIME
                    || !self.pool.may_continue(self.id)
            };
            if let Some(work) = next.take_if(has_to_stop) {
                self.pool.tools().report(work, context, None);
            }
        }
    }

    /// Makes one invocation. Tells the pool when a handler of this burst waits for the first time.
    async fn run_one(&mut self, work: &Work, context: &StartContext) -> Option<AttemptEnd> {
        let mut attempt = pin!(self.pool.tools().run_attempt(work, context));
        let (pool, id, has_waited) = (&self.pool, self.id, &mut self.has_waited);
        poll_fn(|task| {
            let polled = attempt.as_mut().poll(task);
            if polled.is_pending() && !*has_waited {
                *has_waited = true;
                pool.on_waiting(id);
            }
            polled
        })
        .await
    }
}
