//! [`Runner`]: starts bursts and collects their results.

use std::sync::Arc;

use hashbrown::{HashMap, hash_map::Entry};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::Instant,
};

use super::{
    pool::WorkerPool,
    worker::{Finished, StartContext, StartId},
};
use crate::{
    outbox::{
        Shared,
        clock::{Clock as _, SystemClock},
    },
    record::Partition,
    registry::HandlerIx,
    runtime::{engine::Engine, lane::Burst, meters::Meters, ownership::StartPermit},
    store::Database,
};

/// The event loop takes at most 1,024 results from the channel at once.
const MAX_RESULTS_PER_TURN: usize = 1024;

/// Starts bursts and collects their results. The event loop owns it. Dropping it cancels everything
/// that runs.
pub(crate) struct Runner<Db: Database> {
    pool: WorkerPool<Db>,
    results: UnboundedReceiver<Finished>,
    /// Results that were taken from the channel and not handed to the engine yet.
    received: Vec<Finished>,
    /// The running invocations. A result is ignored if its invocation is not in here, or has
    /// another start id.
    started: HashMap<(i64, HandlerIx), Started>,
    last_start_id: StartId,
}

/// An invocation that was started and has no result yet.
#[derive(Debug, Clone, Copy)]
struct Started {
    partition: Partition,
    start_id: StartId,
}

impl<Db: Database> Runner<Db> {
    pub(crate) fn new(outbox: Arc<Shared<Db>>) -> Self {
        let (sender, results) = unbounded_channel();
        Self {
            pool: WorkerPool::new(outbox, sender),
            results,
            received: Vec::new(),
            started: HashMap::new(),
            last_start_id: StartId::default(),
        }
    }

    /// Starts the bursts of the lanes.
    pub(crate) fn start(&mut self, permit: StartPermit, engine: &mut Engine) {
        let bursts = engine.take_bursts();
        if bursts.is_empty() {
            return;
        }
        self.last_start_id.0 += 1;
        let start_id = self.last_start_id;
        for Burst { first, .. } in &bursts {
            let started = Started {
                partition: first.partition,
                start_id,
            };
            let invocation = (first.record.id, first.handler);
            self.started.insert(invocation, started);
        }
        let context = Arc::new(StartContext {
            start_id,
            fence: engine.leases().fence(),
            permit,
        });
        self.pool.start(bursts, &context);
    }

    /// Waits for results. Dropping it loses nothing.
    pub(crate) async fn finished(&mut self) {
        self.results
            .recv_many(&mut self.received, MAX_RESULTS_PER_TURN)
            .await;
    }

    /// Hands the received results to the engine.
    pub(crate) fn on_finished(&mut self, engine: &mut Engine, meters: &Meters) {
        let now = SystemClock.now();
        for finished in self.received.drain(..) {
            let work = finished.work;
            let Entry::Occupied(entry) = self.started.entry((work.record.id, work.handler)) else {
                continue;
            };
            if entry.get().start_id != finished.start_id {
                continue;
            }
            let started = entry.remove();
            let Some(end) = finished.end else {
                engine.on_not_started(work);
                continue;
            };
            meters.finished(&work, &end, now);
            if let Some(next) = engine.on_finished(&work, end) {
                self.started.insert((next, work.handler), started);
            }
        }
    }

    /// Hands all results in the channel to the engine.
    pub(crate) fn take_results(&mut self, engine: &mut Engine, meters: &Meters) {
        while let Ok(finished) = self.results.try_recv() {
            self.received.push(finished);
        }
        self.on_finished(engine, meters);
    }

    /// Cancels the invocations of these partitions, also those whose results are in the channel.
    /// Returns their handlers, one entry per slot.
    pub(crate) fn cancel(&mut self, of: impl Fn(Partition) -> bool) -> Vec<HandlerIx> {
        self.pool.cancel(&of);
        let cancelled = self.started.extract_if(|_, started| of(started.partition));
        cancelled.map(|((_, handler), _)| handler).collect()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.started.is_empty()
    }

    pub(crate) fn running_count(&self) -> usize {
        self.started.len()
    }

    /// When to check again whether all workers are stalled, if bursts are queued.
    pub(crate) fn next_wake(&mut self, now: Instant) -> Option<Instant> {
        self.pool.relieve_stall(now)
    }
}
