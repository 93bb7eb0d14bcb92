//! [`WorkerPool`]: as many workers as can run at once, more while some wait.
//!
//! A task per invocation would cost more than most handlers do, so workers take one burst after the
//! other from a queue. While the handler of a worker waits, the pool replaces the worker, so that
//! no burst waits behind it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hashbrown::HashMap;
use tokio::{runtime::Handle, sync::mpsc::UnboundedSender, task::AbortHandle, time::Instant};

use super::worker::{Finished, StartContext, Worker, WorkerTools};
use crate::{outbox::Shared, record::Partition, runtime::lane::Burst, store::Database};

/// Stalled-worker relief: if no invocation has started for 2 ms although bursts are queued, the pool
/// spawns more workers. With it, handlers that keep their thread (`block_in_place`) run at the same
/// time; without it, one after the other (the tests `delivery::busy`, November 2026).
const STALL: Duration = Duration::from_millis(2);

/// The workers of a dispatcher. Dropping it cancels everything.
pub(super) struct WorkerPool<Db: Database> {
    shared: Arc<PoolShared<Db>>,
    /// The last [`PoolState::progress`] that was seen, and since when it has not changed.
    last_progress: (u64, Instant),
}

pub(super) struct PoolShared<Db: Database> {
    tools: WorkerTools<Db>,
    /// How many workers can run at the same moment: the threads of the runtime.
    parallelism: usize,
    state: Mutex<PoolState>,
}

type QueuedBurst = (Burst, Arc<StartContext>);

/// The event loop and the workers write it.
#[derive(Default)]
struct PoolState {
    queue: VecDeque<QueuedBurst>,
    /// How many invocations were started.
    progress: u64,
    workers: HashMap<WorkerId, WorkerEntry>,
    /// How many of the workers do not wait in a handler.
    active: usize,
    last_id: WorkerId,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct WorkerId(u64);

/// A worker that may take bursts. One that was cancelled has no entry.
struct WorkerEntry {
    /// The partition of its burst, or of the last one.
    partition: Option<Partition>,
    /// A handler that it runs waits for something.
    is_waiting: bool,
    task: AbortHandle,
}

impl<Db: Database> WorkerPool<Db> {
    pub(super) fn new(outbox: Arc<Shared<Db>>, results: UnboundedSender<Finished>) -> Self {
        let threads = Handle::try_current().map_or(1, |handle| handle.metrics().num_workers());
        Self {
            shared: Arc::new(PoolShared {
                tools: WorkerTools::new(outbox, results),
                parallelism: threads.max(1),
                state: Mutex::default(),
            }),
            last_progress: (0, Instant::now()),
        }
    }

    pub(super) fn start(&self, bursts: Vec<Burst>, context: &Arc<StartContext>) {
        let mut state = self.shared.state();
        let bursts = bursts.into_iter().map(|burst| (burst, Arc::clone(context)));
        state.queue.extend(bursts);
        self.shared.fill(&mut state);
    }

    /// Starts nothing more in these partitions. A running invocation ends the next time its handler
    /// waits.
    pub(super) fn cancel(&self, of: impl Fn(Partition) -> bool) {
        let state = &mut *self.shared.state();
        state.queue.retain(|(burst, _)| !of(burst.first.partition));
        let is_cancelled = |worker: &WorkerEntry| worker.partition.is_some_and(&of);
        for (_, worker) in state.workers.extract_if(|_, worker| is_cancelled(worker)) {
            worker.task.abort();
            state.active -= usize::from(!worker.is_waiting);
        }
        self.shared.fill(state);
    }

    /// Spawns workers if all are stalled. Returns when to check again, if bursts are queued.
    pub(super) fn relieve_stall(&mut self, now: Instant) -> Option<Instant> {
        let mut state = self.shared.state();
        if state.queue.is_empty() {
            return None;
        }
        if state.progress != self.last_progress.0 {
            self.last_progress = (state.progress, now);
        }
        if now.duration_since(self.last_progress.1) >= STALL {
            self.last_progress.1 = now;
            let more = state.active.max(1).min(state.queue.len());
            (0..more).for_each(|_| self.shared.spawn(&mut state));
        }
        Some(self.last_progress.1 + STALL)
    }
}

impl<Db: Database> Drop for WorkerPool<Db> {
    fn drop(&mut self) {
        self.cancel(|_| true);
    }
}

impl<Db: Database> PoolShared<Db> {
    pub(super) fn tools(&self) -> &WorkerTools<Db> {
        &self.tools
    }

    /// Takes the burst that a worker runs next. `None`: the worker is not needed, or was cancelled.
    pub(super) fn next_burst(&self, id: WorkerId, has_waited: bool) -> Option<QueuedBurst> {
        let state = &mut *self.state();
        let worker = state.workers.get_mut(&id)?;
        if has_waited {
            worker.is_waiting = false;
            state.active += 1;
        }
        let is_needed = !has_waited || state.active <= self.parallelism;
        if is_needed && let Some(queued) = state.queue.pop_front() {
            worker.partition = Some(queued.0.first.partition);
            state.progress += 1;
            return Some(queued);
        }
        state.workers.remove(&id);
        state.active -= 1;
        None
    }

    /// The handler of a worker waits, so another worker takes the queued bursts.
    pub(super) fn on_waiting(self: &Arc<Self>, id: WorkerId) {
        let mut state = self.state();
        // It may have been cancelled.
        if let Some(worker) = state.workers.get_mut(&id) {
            worker.is_waiting = true;
            state.active -= 1;
            self.fill(&mut state);
        }
    }

    /// Whether a worker may start the next record of its burst.
    pub(super) fn may_continue(&self, id: WorkerId) -> bool {
        let mut state = self.state();
        state.progress += 1;
        state.workers.contains_key(&id)
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Spawns workers until as many are active as can run at once, or as bursts are queued.
    fn fill(self: &Arc<Self>, state: &mut PoolState) {
        let wanted = self.parallelism.min(state.queue.len());
        while state.active < wanted {
            self.spawn(state);
        }
    }

    fn spawn(self: &Arc<Self>, state: &mut PoolState) {
        let id = WorkerId(state.last_id.0 + 1);
        state.last_id = id;
        // The worker takes nothing before the state is unlocked.
        let task = tokio::spawn(Worker::new(id, Arc::clone(self)).run()).abort_handle();
        let worker = WorkerEntry {
            partition: None,
            is_waiting: false,
            task,
        };
        state.workers.insert(id, worker);
        state.active += 1;
    }
}
