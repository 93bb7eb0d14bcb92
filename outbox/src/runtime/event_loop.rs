//! [`EventLoop`]: owns the parts, waits for one event, and hands it to the part that it concerns.

// A child module, because only a child can use the private fields.
#[path = "shutdown.rs"]
mod shutdown;

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, time, time::Instant};
use uuid::Uuid;

use super::{
    engine::Engine,
    fetch::reader::{ReadAnswer, Reader},
    fetch::{FetchPlan, FetchSummary, Fetched, PollReason},
    housekeeping::Housekeeping,
    meters::Meters,
    ownership::{ClaimOutcome, LeaseChanges, Ownership, Watcher, WatcherGone},
    settle::writer::{Writer, Written},
    signals::{Signal, Signals},
    single_task::TaskPanicked,
    timers::Timers,
    work::runner::Runner,
};
use crate::{
    outbox::{Outbox, clock::YEAR, error::Operation},
    record::Partition,
    store::{Database, Lease},
};

/// The first claim waits for the session for up to 1 s. Without a session only leases count.
const FIRST_SESSION_WAIT: Duration = Duration::from_secs(1);
/// While the reader is busy, its timers wake the event loop every 100 ms at most: nothing else can
/// be read before the reader answers.
const BUSY_WAKE: Duration = Duration::from_millis(100);

/// The dispatcher's task. Owns every part, waits for one event at a time, and hands it to the part
/// that it concerns. Its state is not shared, so it needs no lock. Dropping it aborts everything
/// that runs.
pub(super) struct EventLoop<Db: Database> {
    outbox: Outbox<Db>,
    engine: Engine,
    timers: Timers,
    ownership: Ownership,
    reader: Reader<Db>,
    runner: Runner<Db>,
    writer: Writer<Db>,
    housekeeping: Housekeeping<Db>,
    meters: Meters,
}

impl<Db: Database> EventLoop<Db> {
    /// Makes the first claim, so that the start fails if the database cannot be reached.
    pub(super) async fn start(outbox: Outbox<Db>) -> Result<Self, sqlx::Error> {
        let now = Instant::now();
        let inner = &outbox.inner;
        let mut event_loop = Self {
            engine: outbox.engine(Uuid::now_v7()),
            timers: Timers::new(inner.config.poll_interval.min(YEAR), now),
            ownership: Ownership::new(Arc::clone(&inner.signals), now),
            reader: Reader::new(inner.fetcher()),
            runner: Runner::new(Arc::clone(inner)),
            writer: Writer::new(inner.settler(), now),
            housekeeping: Housekeeping::new(outbox.clone(), now),
            meters: Meters::new(&inner.registry),
            outbox,
        };
        event_loop.start_watcher(false);
        if Db::HAS_SESSION_LOCKS {
            // Before the first claim: while no peer could see it die, a process must own nothing.
            let verified = event_loop.ownership.session().verified();
            let _ = time::timeout(FIRST_SESSION_WAIT, verified).await;
        }
        event_loop.start_claim(Instant::now());
        match event_loop.reader.finished().await {
            Ok(ReadAnswer::Claimed(Err(error))) => return Err(error),
            answer => event_loop.on_read(answer),
        }
        if event_loop.ownership.has_no_share() {
            tracing::warn!(
                partitions = event_loop.outbox.inner.known_partitions(),
                "more instances than partitions; this instance starts no handler until another one leaves"
            );
        }
        Ok(event_loop)
    }

    fn start_watcher(&mut self, is_restart: bool) {
        let (outbox, leases) = (Arc::clone(&self.outbox.inner), self.engine.leases());
        let (owner, micros) = (leases.owner(), leases.duration_micros());
        *self.ownership.session() = Watcher::start(outbox, owner, micros, is_restart);
    }

    /// Runs until the handle asks for a shutdown, or is dropped.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<Duration>) {
        let signals = Arc::clone(&self.outbox.inner.signals);
        let grace = loop {
            let now = Instant::now();
            self.outbox.inner.liveness.tick(now);

            // Each part starts what it can. A part that is busy, or has nothing to do, returns.
            self.start_work(now);
            let (offset, is_idle) = (self.outbox.inner.offset(), self.runner.is_idle());
            self.writer.start(now, &mut self.engine, offset, is_idle);
            self.start_reading(now);
            let running = self.runner.running_count();
            self.housekeeping.start(now, &self.engine, running);

            // A branch that is dropped loses nothing: channels keep their messages, tasks continue,
            // and a signal stays raised until it is taken.
            let next_wake = self.next_wake(now);
            tokio::select! {
                () = self.runner.finished() => self.runner.on_finished(&mut self.engine, &self.meters),
                answer = self.reader.finished() => self.on_read(answer),
                written = self.writer.finished() => self.on_written(written),
                raised = signals.raised() => self.on_signals(raised),
                changed = self.ownership.session().changed() => self.on_session(changed),
                () = time::sleep_until(next_wake) => self.meters.woken_by_timer(),
                grace = &mut stop => break grace.ok(),
            }
        };
        match grace {
            Some(grace) => self.shut_down(Instant::now() + grace.min(YEAR)).await,
            None => self.abort(),
        }
    }

    /// Starts the bursts of the lanes, unless another process may own their partitions by now.
    fn start_work(&mut self, now: Instant) {
        if self.engine.lanes().has_bursts() {
            self.ownership.verify_session(now);
            if let Some(permit) = self.ownership.permit(&self.engine, now) {
                self.runner.start(permit, &mut self.engine);
            }
        }
    }

    /// Claims and fetches share the reading connection; a claim that is due goes first.
    fn start_reading(&mut self, now: Instant) {
        if !self.reader.is_idle() || now < self.timers.not_before() {
            return;
        }
        if now >= self.ownership.claim_at(&self.engine) {
            return self.start_claim(now);
        }
        self.reader.evict_if_crowded(now, &mut self.engine);
        let request = self.timers.take_request(now, self.outbox.inner.offset());
        if request.due && self.engine.is_full() {
            self.timers.due_found_no_room(now);
        }
        if let Some(plan) = self.engine.plan_fetch(request) {
            if request.poll != Some(PollReason::Timer) {
                // The records of this fetch are started at once.
                self.ownership.verify_session(now);
            }
            self.reader.start_fetch(plan);
        }
    }

    fn start_claim(&mut self, now: Instant) {
        let request = self.ownership.start_claim(now, &mut self.engine);
        self.reader.start_claim(request);
    }

    fn on_read(&mut self, answer: Result<ReadAnswer, TaskPanicked>) {
        let now = Instant::now();
        match answer {
            Ok(ReadAnswer::Claimed(Ok(outcome))) => self.on_claimed(now, outcome),
            Ok(ReadAnswer::Fetched(plan, Ok(fetched))) => self.on_fetched(now, &plan, fetched),
            Ok(ReadAnswer::Claimed(Err(error))) => self.on_error(now, Operation::Claim, &error),
            Ok(ReadAnswer::Fetched(plan, Err(error))) => {
                self.engine.on_fetch_failed(*plan);
                // Another fetch has to find the records that this one did not.
                self.timers.sweep_now(now);
                self.on_error(now, Operation::Fetch, &error);
            }
            // Only a shutdown renews and leaves.
            Ok(ReadAnswer::Renewed(..) | ReadAnswer::Left(..)) => {}
            Err(TaskPanicked) => self.reset(),
        }
    }

    fn on_error(&mut self, now: Instant, operation: Operation, error: &sqlx::Error) {
        let delay = self.reader.failed(operation, error);
        self.ownership.request_claim();
        self.timers.pause_until(now + delay);
    }

    fn on_claimed(&mut self, now: Instant, outcome: ClaimOutcome) {
        self.reader.recovered();
        let has_gained = self.apply_leases(&outcome);
        let (ownership, engine) = (&mut self.ownership, &mut self.engine);
        if ownership.rebalance(now, outcome, has_gained, engine) {
            self.timers.sweep_now(now);
        }
    }

    /// Applies the leases of a claim. Lost partitions are cancelled and forgotten here, before any
    /// partition is closed or opened. Returns whether partitions were gained.
    fn apply_leases(&mut self, outcome: &ClaimOutcome) -> bool {
        let (owned, peers) = (outcome.leases.len(), outcome.decision.peers);
        let (ownership, engine) = (&mut self.ownership, &mut self.engine);
        let LeaseChanges { gained, lost } = ownership.apply_leases(outcome, engine);
        self.drop_partitions(&lost);
        if !gained.is_empty() {
            tracing::info!(gained = gained.len(), owned, peers, "partitions gained");
        }
        self.housekeeping.set_ownership(outcome);
        !gained.is_empty()
    }

    /// The fence refused a batch, so peers may own these partitions. The next claim finds out.
    fn on_refused(&mut self, refused: &[Lease]) {
        let lost = self.engine.on_refused(refused, Instant::now());
        self.drop_partitions(&lost);
        self.ownership.request_claim();
    }

    /// Cancels what runs in lost partitions, and forgets everything about them.
    fn drop_partitions(&mut self, lost: &[Partition]) {
        if !lost.is_empty() {
            tracing::warn!(partitions = ?lost, "leases lost; running handlers cancelled");
            let cancelled = self.runner.cancel(|partition| lost.contains(&partition));
            self.engine.drop_partitions(lost, &cancelled);
            self.meters.leases_lost(lost.len());
        }
    }

    fn on_fetched(&mut self, now: Instant, plan: &FetchPlan, fetched: Fetched) {
        self.reader.recovered();
        self.meters.late_found(fetched.late_found);
        let (next_due, expects_late) = (fetched.next_due, fetched.expects_late);
        let FetchSummary { new, due } = self.engine.on_fetched(plan, fetched);
        if plan.due.is_some() {
            self.timers.due_reported(now, next_due, due > 0);
        }
        if new > 0 || expects_late {
            self.timers.expect_late(now);
        }
    }

    fn on_written(&mut self, written: Result<Written, TaskPanicked>) {
        let Ok(Written { batch, outcome }) = written else {
            return self.reset();
        };
        self.meters.written(batch.batch());
        // Only now: a fetch before the delivery was written would find nothing.
        if let Some(delay) = batch.batch().first_due() {
            self.timers.due_in(Instant::now(), delay);
        }
        if !outcome.refused.is_empty() {
            // First: `on_written` makes memory forget these records, and they could start again.
            self.on_refused(&outcome.refused);
        }
        self.engine.on_written(batch);
    }

    fn on_signals(&mut self, raised: Signals) {
        let now = Instant::now();
        self.meters.woken(raised);
        self.timers.on_signals(raised, now);
        if raised.has(Signal::PauseChanged) || raised.has(Signal::OwnershipChanged) {
            self.ownership.request_claim();
        }
    }

    fn on_session(&mut self, changed: Result<(), WatcherGone>) {
        if changed.is_err() {
            tracing::error!("watcher panicked; restarting it");
            self.start_watcher(true);
        }
    }

    /// A task panicked, and its rows are lost. Forgets everything in memory and reads it again, as
    /// after a crash. Records whose results were not written are delivered again.
    fn reset(&mut self) {
        tracing::error!("task of the dispatcher panicked; reading everything again");
        self.runner.cancel(|_| true);
        let inner = &self.outbox.inner;
        self.engine = self.outbox.engine(self.engine.leases().owner());
        self.ownership.reset();
        self.reader.replace(inner.fetcher());
        self.writer.replace(inner.settler());
    }

    /// The earliest wake-up of all parts. Those that need the reader wait until it is idle.
    fn next_wake(&mut self, now: Instant) -> Instant {
        let is_idle = self.reader.is_idle();
        let not_before = if is_idle { now } else { now + BUSY_WAKE };
        let claim_at = self.ownership.claim_at(&self.engine);
        let wakes = self.reader.next_wake().into_iter().chain([claim_at]);
        let read_at = wakes.fold(self.timers.next_wake(), Instant::min);
        let wakes = [
            self.writer.next_wake(),
            self.runner.next_wake(now),
            self.housekeeping.next_wake(),
        ];
        let first = read_at.max(not_before).max(self.timers.not_before());
        wakes.into_iter().flatten().fold(first, Instant::min)
    }
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;

    use super::*;
    use crate::registry::Registry;

    /// The record has no handler, so that its batch needs no invocation.
    #[tokio::test]
    async fn a_refused_batch_ends_the_lease_and_asks_for_a_claim() {
        let pool = SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect("sqlite::memory:").await.unwrap();
        let registry = Registry::builder().allow_empty();
        let outbox = Outbox::builder(pool.clone()).registry(registry).build();
        let mut event_loop = EventLoop::start(outbox.await.unwrap()).await.unwrap();
        let publish = "insert into outbox_record (event_id, event, version, key, part, payload) values (randomblob(16), 'e', 1, 'k', 7, '{}')";
        sqlx::query(publish).execute(&pool).await.unwrap();
        event_loop.start_reading(Instant::now());
        let answer = event_loop.reader.finished().await;
        event_loop.on_read(answer);
        let lose = "update outbox_lease set epoch = epoch + 1 where part = 7";
        sqlx::query(lose).execute(&pool).await.unwrap();
        event_loop.writer.start_now(&mut event_loop.engine, 0);
        let written = event_loop.writer.finished().await;
        event_loop.on_written(written);

        let leases = event_loop.engine.leases().leases();
        assert!(
            leases.len() == 63
                && leases
                    .iter()
                    .all(|lease| lease.partition != Partition::new(7))
        );
        assert!(event_loop.ownership.claim_at(&event_loop.engine) <= Instant::now());
        event_loop.start_reading(Instant::now());
        let answer = event_loop.reader.finished().await;
        event_loop.on_read(answer);
        assert_eq!(
            event_loop.engine.leases().leases().len(),
            64,
            "a later claim gains it again"
        );
    }
}
