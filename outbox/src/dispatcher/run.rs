//! The dispatcher's loop: does what the [`Engine`] and the [`Agenda`] say, on two connections.
//!
//! One fetch and one write are under way at most, each in a task of its own that gives its
//! connection back with its answer; handlers run in tasks of their own.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, JoinHandle},
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    agenda::Agenda,
    engine::{Engine, News, Want},
    transactional::AttemptOf,
};
use crate::{
    Database, Decision, Outbox, Retention,
    fetch::{Arrived, Claim, Fetcher, Round},
    lane::{HandlerIx, Unwritten, Work},
    outage::Outage,
    settle::Settler,
    store::{Fence, Lease},
    wake::Call,
};

/// One running dispatcher.
pub(super) struct Run<Db: Database> {
    outbox: Outbox<Db>,
    engine: Engine,
    agenda: Agenda,
    /// With their task while a fetch or a write is under way.
    fetcher: Option<Fetcher<Db>>,
    settler: Option<Settler<Db>>,
    reading: Option<JoinHandle<Read<Db>>>,
    writing: Option<JoinHandle<Written<Db>>>,
    /// Invocations that run. An answer of one that is not here any more is ignored.
    running: HashMap<(i64, HandlerIx), Started>,
    finished: UnboundedSender<(Work, Decision)>,
    answers: UnboundedReceiver<(Work, Decision)>,
    outage: Outage,
    paused_at: Instant,
    /// When leases were last renewed while stopping.
    renewed_at: Instant,
    /// Since when there has been no room for what could be read.
    full_since: Option<Instant>,
    pruned_at: Instant,
    pruning: Option<JoinHandle<()>>,
}

struct Started {
    part: u16,
    task: AbortHandle,
}

/// What the reading task gives back.
struct Read<Db: Database> {
    fetcher: Fetcher<Db>,
    answer: Answer,
}

enum Answer {
    Round(Box<Round>, Result<Arrived, sqlx::Error>),
    Claim(Instant, Result<(Vec<Lease>, Vec<String>), sqlx::Error>),
}

/// What the writing task gives back.
struct Written<Db: Database> {
    settler: Settler<Db>,
    unwritten: Unwritten,
}

/// How long what could be read waits for room before something slow is put aside.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often finished records are looked for that are older than they are to be kept.
const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// Leases that could not be renewed while stopping: not again before this.
const RENEW_AGAIN: Duration = Duration::from_millis(100);
/// How often to ask which handlers are paused, and to renew at the latest.
const PAUSED_EVERY: Duration = Duration::from_secs(5);

impl<Db: Database> Run<Db> {
    pub(super) fn new(outbox: Outbox<Db>, engine: Engine) -> Self {
        let now = Instant::now();
        let inner = &outbox.inner;
        let (finished, answers) = unbounded_channel();
        Self {
            agenda: Agenda::new(inner.config.poll_interval, now),
            fetcher: Some(inner.fetcher()),
            settler: Some(inner.settler()),
            reading: None,
            writing: None,
            running: HashMap::new(),
            finished,
            answers,
            outage: Outage::default(),
            paused_at: now,
            renewed_at: now,
            full_since: None,
            pruned_at: now,
            pruning: None,
            engine,
            outbox,
        }
    }

    /// The first claim, so that a database that is not there is an error at the start.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let Some(mut fetcher) = self.fetcher.take() else {
            return Ok(());
        };
        let asked_at = Instant::now();
        let answer = claim(&mut fetcher, &self.claim()).await;
        self.fetcher = Some(fetcher);
        let (leases, paused) = answer?;
        self.claimed(asked_at, &leases, &paused);
        Ok(())
    }

    /// Runs until `stop` says within which time to stop.
    pub(super) async fn run(mut self, stop: tokio::sync::oneshot::Receiver<Duration>) {
        let mut stop = stop;
        let wake = Arc::clone(&self.outbox.inner.wake);
        let mut answers = Vec::new();
        let limit = loop {
            let now = Instant::now();
            self.start_work(now);
            self.start_writing();
            self.start_reading(now);
            self.start_pruning(now);
            let next = self.next_instant();
            // Nothing is lost with a branch that is dropped: channels keep what they have, tasks
            // go on, a call to wake is remembered.
            tokio::select! {
                count = self.answers.recv_many(&mut answers, 1024) => {
                    if count > 0 {
                        self.handlers_finished(&mut answers);
                    }
                }
                read = joined(&mut self.reading) => self.read(read),
                written = joined(&mut self.writing) => self.wrote(written),
                call = wake.called() => self.called(call),
                () = sleep_until(next) => {}
                limit = &mut stop => break limit.ok(),
            }
        };
        match limit {
            Some(limit) => self.stop(Instant::now() + limit).await,
            // The handle was dropped.
            None => self.abort(),
        }
    }

    fn called(&mut self, call: Call) {
        let now = Instant::now();
        if call.soon {
            self.agenda.published(now);
        }
        if call.later {
            self.agenda.scheduled(now);
        }
        if call.now {
            self.agenda.all(now);
        }
        if call.paused {
            self.paused_at = long_ago(now);
        }
    }

    fn next_instant(&self) -> Instant {
        let mut next = self.agenda.next().min(self.claim_at());
        next = next.min(self.pruned_at + PRUNE_EVERY);
        if let Some(since) = self.full_since {
            next = next.min(since + PATIENCE);
        }
        // Waking up earlier would only find that it is too early.
        next = next.max(self.agenda.not_before());
        if self.reading.is_some() {
            // Only the answer can bring something new to read.
            next = next.max(Instant::now() + Duration::from_millis(100));
        }
        next
    }

    fn claim_at(&self) -> Instant {
        let renew = self.engine.leases.renew_at();
        renew.min(self.paused_at + PAUSED_EVERY)
    }

    fn claim(&self) -> Claim {
        self.engine.claim(self.lease_micros())
    }

    fn lease_micros(&self) -> i64 {
        let lease = self.outbox.inner.config.lease();
        let micros = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX / 4);
        micros.min(i64::MAX / 4)
    }

    /// Starts what the lanes say, unless another process may own it by now.
    fn start_work(&mut self, now: Instant) {
        if !self.engine.leases.are_valid(now) {
            return;
        }
        let works = self.engine.lanes.take_work();
        if works.is_empty() {
            return;
        }
        let fence = Arc::new(self.engine.leases.fence());
        for work in works {
            let inner = Arc::clone(&self.outbox.inner);
            let finished = self.finished.clone();
            let (id, part) = ((work.record.id, work.handler), work.part);
            let fence = Arc::clone(&fence);
            let task = tokio::spawn(async move {
                let Some(handler) = inner.registry.entries().get(usize::from(work.handler)) else {
                    return;
                };
                let attempt = AttemptOf {
                    inner: &inner,
                    handler,
                    fence: &fence,
                    work: &work,
                };
                let decision = attempt.dispatch().await;
                // The loop has ended if nobody takes it; the record is delivered again.
                let _ = finished.send((work, decision));
            });
            let task = task.abort_handle();
            self.running.insert(id, Started { part, task });
        }
    }

    fn handlers_finished(&mut self, answers: &mut Vec<(Work, Decision)>) {
        for (work, decision) in answers.drain(..) {
            if self
                .running
                .remove(&(work.record.id, work.handler))
                .is_none()
            {
                continue;
            }
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

    fn start_writing(&mut self) {
        if self.settler.is_none() || !self.engine.lanes.has_unwritten() {
            return;
        }
        let (Some(mut settler), Some(mut unwritten)) =
            (self.settler.take(), self.engine.lanes.take_unwritten())
        else {
            return;
        };
        unwritten.batch.shift(self.outbox.inner.offset());
        self.engine.will_block(unwritten.batch.parts());
        let fence = self.engine.leases.fence();
        self.writing = Some(tokio::spawn(async move {
            settler.write(&fence, &unwritten.batch).await;
            Written { settler, unwritten }
        }));
    }

    fn wrote(&mut self, written: Option<Written<Db>>) {
        self.writing = None;
        match written {
            Some(Written { settler, unwritten }) => {
                self.settler = Some(settler);
                // Not before it is written: a fetch in between would find nothing.
                if let Some(delay) = unwritten.batch.first_due() {
                    self.agenda.due_in(Instant::now(), delay);
                }
                self.engine.lanes.written(unwritten);
            }
            None => self.settler = Some(self.outbox.inner.settler()),
        }
    }

    fn start_reading(&mut self, now: Instant) {
        if !self.agenda.may_start(now) || self.fetcher.is_none() {
            return;
        }
        if now >= self.claim_at() {
            let claim = self.claim();
            self.paused_at = now;
            self.reading = self.fetcher.take().map(|mut fetcher| {
                tokio::spawn(async move {
                    let answer = self::claim(&mut fetcher, &claim).await;
                    let answer = Answer::Claim(now, answer);
                    Read { fetcher, answer }
                })
            });
            return;
        }
        self.make_room(now);
        let want = Want {
            // Late ones may be anywhere.
            poll: self.agenda.take_poll(now) | self.agenda.take_late(now),
            due: self.agenda.take_due(now),
            sweep: self.agenda.take_sweep(now),
            offset: self.outbox.inner.offset(),
        };
        if want.due && self.engine.has_no_room() {
            // Otherwise retries of all handlers would wait for the next poll.
            self.agenda.due_again(now);
        }
        let Some(round) = self.engine.round(want) else {
            return;
        };
        self.reading = self.fetcher.take().map(|mut fetcher| {
            tokio::spawn(async move {
                let arrived = fetcher.fetch(&round).await;
                let answer = Answer::Round(Box::new(round), arrived);
                Read { fetcher, answer }
            })
        });
    }

    /// One slow handler must not take the room of all others.
    fn make_room(&mut self, now: Instant) {
        if !self.engine.is_full() {
            self.full_since = None;
            return;
        }
        let since = *self.full_since.get_or_insert(now);
        if now.duration_since(since) >= PATIENCE {
            self.engine.spill();
            self.full_since = Some(now);
        }
    }

    /// Removes finished records that are older than they are to be kept, beside everything else.
    fn start_pruning(&mut self, now: Instant) {
        if now.duration_since(self.pruned_at) < PRUNE_EVERY {
            return;
        }
        self.pruned_at = now;
        let busy = self.pruning.as_ref();
        let Retention::For(time) = self.outbox.inner.config.processing.retention else {
            return;
        };
        if busy.is_some_and(|pruning| !pruning.is_finished()) {
            return;
        }
        let outbox = self.outbox.clone();
        self.pruning = Some(tokio::spawn(async move {
            match outbox.operations().prune(time).await {
                Ok(0) => {}
                Ok(records) => tracing::debug!(records, "removed finished records"),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!("finished records were not removed: {error:#}");
                }
            }
        }));
    }

    fn read(&mut self, read: Option<Read<Db>>) {
        self.reading = None;
        let now = Instant::now();
        let Some(Read { fetcher, answer }) = read else {
            // The task panicked, which nothing in it does.
            self.fetcher = Some(self.outbox.inner.fetcher());
            self.engine.lanes.fetch_failed(Vec::new());
            self.agenda.sweep(now);
            return;
        };
        self.fetcher = Some(fetcher);
        let failed = match answer {
            Answer::Claim(asked_at, Ok((leases, paused))) => {
                self.outage.over();
                self.claimed(asked_at, &leases, &paused);
                return;
            }
            Answer::Round(round, Ok(arrived)) => {
                self.outage.over();
                self.arrived(now, &round, arrived);
                return;
            }
            Answer::Claim(_, Err(error)) => ("renewing its leases", error),
            Answer::Round(round, Err(error)) => {
                self.engine.failed(*round);
                // What this fetch was to find is still to be found.
                self.agenda.sweep(now);
                ("reading records", error)
            }
        };
        let wait = self.outage.failed(failed.0, &failed.1);
        self.paused_at = long_ago(now);
        self.agenda.wait_until(now + wait);
    }

    fn arrived(&mut self, now: Instant, round: &Round, arrived: Arrived) {
        let (next_due, late_possible) = (arrived.next_due, arrived.late_possible);
        let looked_for_due = round.due.is_some();
        let News { new, due, .. } = self.engine.arrived(round, arrived);
        if looked_for_due {
            self.agenda.next_due(now, next_due, due > 0);
        }
        if new > 0 || late_possible {
            self.agenda.may_be_late(now);
        }
    }

    fn claimed(&mut self, asked_at: Instant, leases: &[Lease], paused: &[String]) {
        let changes = self.engine.claimed(leases, asked_at);
        if !changes.lost.is_empty() {
            tracing::warn!(partitions = ?changes.lost, "lost leases; what ran for them is stopped");
            let stopped = self.stop_running(|part| changes.lost.contains(&part));
            self.engine.lanes.lose(&changes.lost, &stopped);
        }
        if !changes.gained.is_empty() {
            tracing::info!(partitions = changes.gained.len(), "owns partitions");
            self.agenda.sweep(Instant::now());
        }
        if self.engine.pause(paused) {
            self.agenda.sweep(Instant::now());
        }
    }

    /// Stops invocations. Those whose answer is under way are stopped too: it will be ignored.
    fn stop_running(&mut self, of: impl Fn(u16) -> bool) -> Vec<HandlerIx> {
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

    /// Lets what runs finish until then, writes what became of it, and gives the leases up.
    async fn stop(mut self, until: Instant) {
        self.stop_pruning();
        let mut answers = Vec::new();
        while !self.running.is_empty() {
            // Nobody else may run what still runs here, however long that takes.
            let renew_at = self
                .engine
                .leases
                .renew_at()
                .max(self.renewed_at + RENEW_AGAIN);
            tokio::select! {
                count = self.answers.recv_many(&mut answers, 1024) => {
                    if count > 0 {
                        self.handlers_finished(&mut answers);
                    }
                }
                read = joined(&mut self.reading) => self.read_too_late(read),
                () = sleep_until(renew_at), if self.fetcher.is_some() => {
                    if timeout_at(until, self.renew()).await.is_err() {
                        break;
                    }
                }
                () = sleep_until(until) => break,
            }
        }
        let stopped = self.stop_running(|_| true);
        if !stopped.is_empty() {
            tracing::warn!(
                invocations = stopped.len(),
                "stopped before they had finished; their records are delivered again"
            );
        }
        // A batch that is being written is waited for, and then what has come up since.
        let flushed = timeout_at(until.max(Instant::now() + Duration::from_secs(1)), async {
            loop {
                if let Some(writing) = self.writing.take() {
                    let written = writing.await.ok();
                    self.wrote(written);
                }
                self.start_writing();
                if self.writing.is_none() {
                    break;
                }
            }
        });
        if flushed.await.is_err() {
            tracing::warn!(
                "stopped before everything was written; some records are delivered again"
            );
        }
        self.release().await;
    }

    /// What was read while we stop is left to whoever comes next. Leases that were taken are to
    /// be given up too.
    fn read_too_late(&mut self, read: Option<Read<Db>>) {
        self.reading = None;
        let Some(Read { fetcher, answer }) = read else {
            self.fetcher = Some(self.outbox.inner.fetcher());
            return;
        };
        self.fetcher = Some(fetcher);
        match answer {
            Answer::Claim(asked_at, Ok((leases, paused))) => {
                self.claimed(asked_at, &leases, &paused);
            }
            Answer::Claim(_, Err(_)) => {}
            Answer::Round(round, _) => self.engine.failed(*round),
        }
    }

    async fn renew(&mut self) {
        let (fence, micros) = (self.engine.leases.fence(), self.lease_micros());
        self.renewed_at = Instant::now();
        let Some(fetcher) = &mut self.fetcher else {
            return;
        };
        match fetcher.renew(&fence, micros).await {
            Ok(()) => self.engine.leases.renewed(self.renewed_at),
            Err(error) => {
                self.outage.failed("renewing its leases", &error);
            }
        }
    }

    async fn release(&mut self) {
        if let Some(reading) = self.reading.take() {
            let read = reading.await.ok();
            self.read_too_late(read);
        }
        let fence: Fence = self.engine.leases.fence();
        let fetcher = self.fetcher.take();
        let mut fetcher = fetcher.unwrap_or_else(|| self.outbox.inner.fetcher());
        let limit = Duration::from_secs(2);
        match tokio::time::timeout(limit, fetcher.release(&fence)).await {
            Ok(Ok(())) => tracing::info!("stopped, and gave its partitions up"),
            Ok(Err(error)) => tracing::warn!(%error, "stopped; its leases run out by themselves"),
            Err(_) => tracing::warn!("stopped; its leases run out by themselves"),
        }
    }

    /// In the middle of a batch nothing of it is removed.
    fn stop_pruning(&mut self) {
        if let Some(pruning) = self.pruning.take() {
            pruning.abort();
        }
    }

    fn abort(mut self) {
        self.stop_pruning();
        self.stop_running(|_| true);
        if let Some(reading) = self.reading.take() {
            reading.abort();
        }
        if let Some(writing) = self.writing.take() {
            writing.abort();
        }
        tracing::warn!(
            "the dispatcher was dropped without `shutdown`; its leases run out by themselves"
        );
    }
}

/// Whatever was done then is to be done now.
fn long_ago(now: Instant) -> Instant {
    now.checked_sub(PAUSED_EVERY).unwrap_or(now)
}

async fn claim<Db: Database>(
    fetcher: &mut Fetcher<Db>,
    claim: &Claim,
) -> Result<(Vec<Lease>, Vec<String>), sqlx::Error> {
    let leases = fetcher.claim(claim).await?;
    let paused = fetcher.paused().await?;
    Ok((leases, paused))
}

/// The answer of a task, once it has one; never if there is no task. `None` if it panicked.
async fn joined<T>(task: &mut Option<JoinHandle<T>>) -> Option<T> {
    match task {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}
