//! The dispatcher's loop: does what the [`Engine`] and the [`Timers`] say, on two connections.
//!
//! One fetch and one write are under way at most, each in a task of its own that gives its
//! connection back with its answer; handlers are run by the [`WorkerPool`].

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

use crate::runtime::{
    engine::Engine,
    housekeeping::prune::PRUNE_EVERY,
    read::{PATIENCE, Read, long_ago},
    settle::writer::{LINGER, Written},
    timers::Timers,
    work::{
        pool::{Finished, WorkerPool},
        runner::Started,
    },
};
use crate::{
    outbox::{Outbox, clock::YEAR},
    runtime::{
        backoff::DatabaseBackoff,
        fetch::Fetcher,
        lane::HandlerIx,
        meters::{Gauges, Meters},
        ownership::{hand_over::HandOver, session::SessionState, watcher::Watcher},
        settle::settler::Settler,
        signals::Signals,
    },
    store::{Database, Lease},
    telemetry::metrics::is_recorded,
};

/// How long the first claim waits for the session. Without it, leases that run out are all there is.
const SESSION: Duration = Duration::from_secs(1);

/// One running dispatcher.
pub(in crate::runtime) struct Run<Db: Database> {
    pub(in crate::runtime) outbox: Outbox<Db>,
    pub(in crate::runtime) engine: Engine,
    pub(in crate::runtime) agenda: Timers,
    /// With their task while a fetch or a write is under way.
    pub(in crate::runtime) fetcher: Option<Fetcher<Db>>,
    pub(in crate::runtime) settler: Option<Settler<Db>>,
    pub(in crate::runtime) reading: Option<JoinHandle<Read<Db>>>,
    pub(in crate::runtime) writing: Option<JoinHandle<Written<Db>>>,
    /// Invocations that were started, with their partitions. An answer of one that is not here any
    /// more is ignored.
    pub(in crate::runtime) running: HashMap<(i64, HandlerIx), Started>,
    /// How often something was started.
    pub(in crate::runtime) starts: u64,
    pub(in crate::runtime) crew: WorkerPool<Db>,
    pub(in crate::runtime) answers: UnboundedReceiver<Finished>,
    /// When a batch was last written.
    pub(in crate::runtime) wrote_at: Instant,
    /// What is done waits for more.
    pub(in crate::runtime) lingers: bool,
    pub(in crate::runtime) outage: DatabaseBackoff,
    pub(in crate::runtime) paused_at: Instant,
    /// When leases were last renewed while stopping.
    pub(in crate::runtime) renewed_at: Instant,
    /// Since when there has been no room for what could be read.
    pub(in crate::runtime) full_since: Option<Instant>,
    pub(in crate::runtime) pruned_at: Instant,
    pub(in crate::runtime) pruning: Option<JoinHandle<()>>,
    pub(in crate::runtime) meters: Meters,
    pub(in crate::runtime) gauges: Arc<Gauges>,
    /// Whether gauges look at the database.
    pub(in crate::runtime) samples: bool,
    pub(in crate::runtime) sampled_at: Option<Instant>,
    pub(in crate::runtime) sampling: Option<JoinHandle<()>>,
    /// Removes old commands and messages.
    pub(in crate::runtime) forgetting: Option<JoinHandle<()>>,
    /// What the watcher says. It ends when this is dropped.
    pub(in crate::runtime) session: Option<watch::Receiver<SessionState>>,
    /// The session under which the leases were confirmed.
    pub(in crate::runtime) confirmed: u64,
    /// Free, and left to others since then.
    pub(in crate::runtime) left: BTreeMap<Lease, Instant>,
    pub(in crate::runtime) hand_over: HandOver,
    /// How many partitions this process should own.
    pub(in crate::runtime) share: usize,
    /// Whether something is reserved to others, who may not take it.
    pub(in crate::runtime) reserved: bool,
    /// When another instance may be taken for dead, as it was seen by the last claim.
    pub(in crate::runtime) next_expiry: Option<Instant>,
}

impl<Db: Database> Run<Db> {
    pub(in crate::runtime) fn new(outbox: Outbox<Db>, engine: Engine) -> Self {
        let now = Instant::now();
        let inner = &outbox.inner;
        let (finished, answers) = unbounded_channel();
        Self {
            agenda: Timers::new(inner.config.poll_interval.min(YEAR), now),
            fetcher: Some(inner.fetcher()),
            settler: Some(inner.settler()),
            reading: None,
            writing: None,
            running: HashMap::new(),
            starts: 0,
            crew: WorkerPool::new(Arc::clone(inner), finished),
            meters: Meters::new(&inner.registry),
            gauges: Arc::new(Gauges::new()),
            samples: inner.config.metrics.sampling && is_recorded(),
            sampled_at: None,
            sampling: None,
            answers,
            wrote_at: now,
            lingers: false,
            outage: DatabaseBackoff::default(),
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
    pub(in crate::runtime) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let Some(mut fetcher) = self.fetcher.take() else {
            return Ok(());
        };
        // First the session, so that nothing is owned by a process whose end nobody would see.
        self.start_watching();
        if let Some(session) = &mut self.session
            && Db::HAS_SESSION_LOCKS
        {
            let alive = |session: &SessionState| session.number() > 1;
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
            Arc::clone(&inner.sql),
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
    pub(in crate::runtime) async fn run(mut self, mut stop: oneshot::Receiver<Duration>) {
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
    pub(in crate::runtime) fn begin_anew(&mut self) {
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

    fn called(&mut self, call: Signals) {
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
async fn changed(session: &mut Option<watch::Receiver<SessionState>>) -> bool {
    match session {
        Some(session) => session.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

/// The answer of a task, once it has one; never if there is no task. `None` if it panicked.
pub(in crate::runtime) async fn joined<T>(task: &mut Option<JoinHandle<T>>) -> Option<T> {
    match task {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}
