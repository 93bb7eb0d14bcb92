//! [`Writer`]: writes one batch at a time, with coalescing.
//!
//! Coalescing: while handlers run, a batch of plain completions waits until 1,024 records are in it
//! or 2 ms have passed since the last one was written, so that one statement completes many. With
//! it the benchmark `drain` takes 0.0013 commits a record (November 2026); without it every
//! iteration of the event loop commits.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::settler::Settler;
use crate::{
    runtime::{
        engine::Engine,
        lane::OutgoingBatch,
        meters::Meters,
        single_task::{SingleTask, TaskPanicked},
    },
    store::{Database, SettleOutcome},
};

const COALESCE_RECORDS: usize = 1024;
const COALESCE_TIME: Duration = Duration::from_millis(2);

/// Writes one batch at a time, in a task of its own.
pub(crate) struct Writer<Db: Database> {
    task: SingleTask<Settler<Db>, Written>,
    last_write: Instant,
    is_coalescing: bool,
}

/// A batch, and the database's answer to it.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) batch: OutgoingBatch,
    pub(crate) outcome: SettleOutcome,
}

/// How [`Writer::flush`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    Everything,
    /// The time was over, or the task panicked.
    NotEverything,
}

impl<Db: Database> Writer<Db> {
    pub(crate) fn new(settler: Settler<Db>, now: Instant) -> Self {
        Self {
            task: SingleTask::new(settler),
            last_write: now,
            is_coalescing: false,
        }
    }

    /// Starts to write the next batch, unless more completions are expected within 2 ms.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        clock_offset: i64,
        is_runner_idle: bool,
    ) {
        self.is_coalescing = !is_runner_idle
            && now.duration_since(self.last_write) < COALESCE_TIME
            && engine.lanes().completions() < COALESCE_RECORDS
            && engine.lanes().has_only_completions();
        if !self.is_coalescing {
            self.start_now(engine, clock_offset);
        }
    }

    /// Starts to write the next batch, unless one is being written.
    pub(crate) fn start_now(&mut self, engine: &mut Engine, clock_offset: i64) {
        if self.task.is_idle()
            && let Some(batch) = engine.take_batch(clock_offset)
        {
            let fence = engine.leases().fence();
            self.task.start(async move |mut settler| {
                let outcome = settler.write(&fence, batch.batch()).await;
                (settler, Written { batch, outcome })
            });
        }
    }

    /// Waits until the batch is written. Never returns while none is being written. Dropping it
    /// loses nothing.
    pub(crate) async fn finished(&mut self) -> Result<Written, TaskPanicked> {
        let written = self.task.finished().await;
        self.last_write = Instant::now();
        written
    }

    /// Writes until nothing is left, or until the time `until`. A task that is still busy then is
    /// aborted, not detached: nothing is written after the dispatcher has shut down.
    pub(crate) async fn flush(
        &mut self,
        engine: &mut Engine,
        meters: &Meters,
        clock_offset: i64,
        until: Instant,
    ) -> Flushed {
        loop {
            self.start_now(engine, clock_offset);
            if self.task.is_idle() {
                return Flushed::Everything;
            }
            let Ok(Ok(written)) = timeout_at(until, self.finished()).await else {
                self.task.abort();
                return Flushed::NotEverything;
            };
            // Refused leases do not matter here: the process leaves and starts nothing more.
            meters.written(written.batch.batch());
            engine.on_written(written.batch);
        }
    }

    /// When a batch has waited long enough for more completions.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.is_coalescing.then(|| self.last_write + COALESCE_TIME)
    }

    /// Aborts the task, if one runs, and continues with another connection.
    pub(crate) fn replace(&mut self, settler: Settler<Db>) {
        self.task.replace(settler);
    }
}
