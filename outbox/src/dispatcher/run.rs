//! The dispatcher's loop: does what the [`Engine`] and the [`Agenda`] say, on two connections.
//!
//! One fetch and one write are under way at most, each in a task of its own that gives its
//! connection back with its answer; handlers are run by the [`Crew`].

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use hashbrown::HashMap;
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, unbounded_channel},
        oneshot, watch,
    },
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::{
    agenda::Agenda,
    crew::{Answered, Crew},
    engine::Engine,
    prune::PRUNE_EVERY,
    read::{PATIENCE, Read, long_ago},
    work::Started,
    write::{LINGER, Written},
};
use crate::{
    Database, Outbox,
    clock::YEAR,
    fetch::Fetcher,
    lane::HandlerIx,
    lease::HandOver,
    metrics::{Gauges, Meters, is_recorded},
    outage::Outage,
    settle::Settler,
    store::Lease,
    wake::Call,
    watch::{Session, Watcher},
};

/// How long the first claim waits for the session. Without it, leases that run out are all there is.
const SESSION: Duration = Duration::from_secs(1);

/// One running dispatcher.
pub(super) struct Run<Db: Database> {
    pub(super) outbox: Outbox<Db>,
    pub(super) engine: Engine,
    pub(super) agenda: Agenda,
    /// With their task while a fetch or a write is under way.
    pub(super) fetcher: Option<Fetcher<Db>>,
    pub(super) settler: Option<Settler<Db>>,
    pub(super) reading: Option<JoinHandle<Read<Db>>>,
    pub(super) writing: Option<JoinHandle<Written<Db>>>,
    /// Invocations that were started, with their partitions. An answer of one that is not here any
    /// more is ignored.
    pub(super) running: HashMap<(i64, HandlerIx), Started>,
    /// How often something was started.
    pub(super) starts: u64,
    pub(super) crew: Crew<Db>,
    pub(super) answers: UnboundedReceiver<Answered>,
    /// When a batch was last written.
    pub(super) wrote_at: Instant,
    /// What is done waits for more.
    pub(super) lingers: bool,
    pub(super) outage: Outage,
    pub(super) paused_at: Instant,
    /// When leases were last renewed while stopping.
    pub(super) renewed_at: Instant,
    /// Since when there has been no room for what could be read.
    pub(super) full_since: Option<Instant>,
    pub(super) pruned_at: Instant,
    pub(super) pruning: Option<JoinHandle<()>>,
    pub(super) meters: Meters,
    pub(super) gauges: Arc<Gauges>,
    /// Whether gauges look at the database.
    pub(super) samples: bool,
    pub(super) sampled_at: Option<Instant>,
    pub(super) sampling: Option<JoinHandle<()>>,
    /// Removes old commands and messages.
    pub(super) forgetting: Option<JoinHandle<()>>,
    /// What the watcher says. It ends when this is dropped.
    pub(super) session: Option<watch::Receiver<Session>>,
    /// The session under which the leases were confirmed.
    pub(super) confirmed: u64,
    /// Free, and left to others since then.
    pub(super) left: BTreeMap<Lease, Instant>,
    pub(super) hand_over: HandOver,
    /// How many partitions this process should own.
    pub(super) share: usize,
    /// Whether something is reserved to others, who may not take it.
    pub(super) reserved: bool,
    /// When another instance may be taken for dead, as it was seen by the last claim.
    pub(super) next_expiry: Option<Instant>,
}

impl<Db: Database> Run<Db> {
    pub(super) fn new(outbox: Outbox<Db>, engine: Engine) -> Self {
        let now = Instant::now();
        let inner = &outbox.inner;
        let (finished, answers) = unbounded_channel();
        Self {
            agenda: Agenda::new(inner.config.poll_interval.min(YEAR), now),
            fetcher: Some(inner.fetcher()),
            settler: Some(inner.settler()),
            reading: None,
            writing: None,
            running: HashMap::new(),
            starts: 0,
            crew: Crew::new(Arc::clone(inner), finished),
            meters: Meters::new(&inner.registry),
            gauges: Arc::new(Gauges::new()),
            samples: inner.config.metrics.sampling && is_recorded(),
            sampled_at: None,
            sampling: None,
            answers,
            wrote_at: now,
            lingers: false,
            outage: Outage::default(),
            paused_at: now,
            renewed_at: now,
            full_since: None,
            pruned_at: now,
            pruning: None,
            forgetting: None,
            session: None,
            confirmed: 0,
            left: BTreeMap::new(),
            hand_over: HandOver::default(),
            share: 0,
            reserved: false,
            next_expiry: None,
            engine,
            outbox,
        }
    }

    /// The first claim, so that a database that is not there is an error at the start.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let Some(mut fetcher) = self.fetcher.take() else {
            return Ok(());
        };
        // First the session, so that nothing is owned by a process whose end nobody would see.
        self.start_watching();
        if let Some(session) = &mut self.session
            && Db::SESSIONS
        {
            let alive = |session: &Session| session.number() > 1;
            let _ = tokio::time::timeout(SESSION, session.wait_for(alive)).await;
        }
        let asked = self.asked(Instant::now());
        let answer = fetcher.claim(&self.claim()).await;
        self.fetcher = Some(fetcher);
        self.claimed(asked, answer?);
        Ok(())
    }

    fn start_watching(&mut self) {
        let inner = &self.outbox.inner;
        let watcher = Watcher::new(
            inner.pool.clone(),
            inner.names.clone(),
            self.engine.leases.owner,
            Arc::clone(&inner.wake),
            inner.config.poll_interval.min(YEAR),
            self.lease_micros(),
            self.session.is_some(),
        );
        self.session = watcher.map(|(watcher, session)| {
            tokio::spawn(watcher.run());
            session
        });
    }

    /// Runs until `stop` says within which time to stop.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<Duration>) {
        let wake = Arc::clone(&self.outbox.inner.wake);
        let mut answers = Vec::new();
        let limit = loop {
            let now = Instant::now();
            self.outbox.inner.heart.beats(now);
            self.start_work(now);
            self.start_writing(now);
            self.start_reading(now);
            self.start_pruning(now);
            self.start_sampling(now);
            let next = self.next_instant(now);
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
                changed = changed(&mut self.session) => if !changed {
                    tracing::error!("the watching task panicked; it is started again");
                    self.start_watching();
                },
                () = sleep_until(next) => self.meters.woken_by_timer(),
                limit = &mut stop => break limit.ok(),
            }
        };
        match limit {
            Some(limit) => self.stop(Instant::now() + limit.min(YEAR)).await,
            // The handle was dropped.
            None => self.abort(),
        }
    }

    /// A task of ours panicked, which nothing in it does: what it had is lost. Begins anew, as after
    /// a crash, with what the database knows.
    pub(super) fn begin_anew(&mut self) {
        tracing::error!("a task of the dispatcher panicked; everything is read again");
        self.stop_running(|_| true);
        if let Some(reading) = self.reading.take() {
            reading.abort();
        }
        if let Some(writing) = self.writing.take() {
            writing.abort();
        }
        let owner = self.engine.leases.owner;
        self.engine = self.outbox.engine();
        self.engine.leases.owner = owner;
        self.left.clear();
        self.hand_over = HandOver::default();
        self.fetcher = Some(self.outbox.inner.fetcher());
        self.settler = Some(self.outbox.inner.settler());
        self.paused_at = long_ago(Instant::now());
    }

    fn called(&mut self, call: Call) {
        let now = Instant::now();
        self.meters.woken(call);
        if call.soon {
            self.agenda.published(now);
        }
        if call.later {
            self.agenda.scheduled(now);
        }
        if call.now {
            self.agenda.all(now);
        }
        if call.records {
            self.agenda.records(now);
        }
        if call.paused || call.leases {
            self.paused_at = long_ago(now);
        }
    }

    fn next_instant(&mut self, now: Instant) -> Instant {
        let held_up = self.crew.help(now);
        let mut next = self.agenda.next().min(self.claim_at());
        next = next.min(self.pruned_at + PRUNE_EVERY);
        next = self.sample_at().map_or(next, |then| next.min(then));
        if let Some(since) = self.full_since {
            next = next.min(since + PATIENCE);
        }
        // Waking up earlier would only find that it is too early.
        next = next.max(self.agenda.not_before());
        if self.reading.is_some() {
            // Only the answer can bring something new to read.
            next = next.max(now + Duration::from_millis(100));
        }
        if self.lingers {
            next = next.min(self.wrote_at + LINGER);
        }
        held_up.map_or(next, |then| next.min(then))
    }
}

/// When the session changes. False if whoever tells it is gone.
async fn changed(session: &mut Option<watch::Receiver<Session>>) -> bool {
    match session {
        Some(session) => session.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

/// The answer of a task, once it has one; never if there is no task. `None` if it panicked.
pub(super) async fn joined<T>(task: &mut Option<JoinHandle<T>>) -> Option<T> {
    match task {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}
