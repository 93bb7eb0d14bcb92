//! The running outbox: reads, dispatches and writes until it is shut down.
//!
//! [`engine`] decides what is to be done, [`agenda`] when; [`run`] is the loop that does it, with
//! [`read`], [`work`], [`write`], [`prune`], [`sample`] and [`stop`]. [`crew`] runs the handlers,
//! [`transactional`] those that complete their record in their own transaction; [`permit`] is the
//! right to begin.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

use super::{engine::Engine, event_loop::Run};
use crate::{
    operations::health::Liveness,
    outbox::{
        Error, Outbox, Result,
        error::{DbContext as _, Operation},
    },
    registry::{HandlerEntry, PermanentFailure, route::Router},
    runtime::{
        lane::{HandlerSettings, LaneSettings},
        ownership::lease_table::LeaseTable,
    },
    store::Database,
};

/// How long [`Dispatcher::shutdown`] lets handlers finish: shorter than the half minute after which
/// orchestrators kill.
const SHUTDOWN: Duration = Duration::from_secs(25);

impl<Db: Database> Outbox<Db> {
    /// Starts to deliver records to the handlers of this process. A recorder of
    /// [metrics](crate::telemetry::metrics) has to be installed before.
    ///
    /// # Errors
    /// When the database cannot be reached (later outages are waited for), when there is no
    /// handler, or when a dispatcher of this outbox runs already.
    pub async fn start(&self) -> Result<Dispatcher> {
        if self.inner.registry.entries().is_empty() {
            return Err(Error::NothingToDispatch);
        }
        let running = Running::new(&self.inner.running).ok_or(Error::AlreadyRunning)?;
        let heart = Arc::clone(&self.inner.heart);
        let mut run = Run::new(self.clone(), self.engine());
        run.begin().await.during(Operation::Claim)?;
        let (stop, stopped) = oneshot::channel();
        let beating = Beating::new(heart);
        let task = tokio::spawn(async move {
            let _beating = beating;
            run.run(stopped).await;
            drop(running);
        });
        Ok(Dispatcher {
            stop: Some(stop),
            task,
        })
    }

    pub(crate) fn engine(&self) -> Engine {
        // One that takes a `Tx` has a connection of the pool while it runs: half of them at most.
        let connections = self.inner.pool.options().get_max_connections();
        let places = |entry: &HandlerEntry| match entry.transactions.any() {
            true => (connections / 2).clamp(1, PLACES),
            false => PLACES,
        };
        let places = |entry: &HandlerEntry| entry.concurrency().unwrap_or_else(|| places(entry));
        self.engine_with(places, LONGEST_TURN)
    }

    /// `places`: how many invocations of a handler may run at once. `longest_turn`: how many records
    /// a lane may run with one place.
    pub(crate) fn engine_with(
        &self,
        places: impl Fn(&HandlerEntry) -> u32,
        longest_turn: usize,
    ) -> Engine {
        let inner = &self.inner;
        let handlers = inner
            .registry
            .entries()
            .iter()
            .map(|entry| HandlerSettings {
                id: entry.id(),
                places: places(entry),
                transactional: entry.transactions.any(),
                skips: entry.on_permanent_failure() == PermanentFailure::Skip,
            });
        let settings = LaneSettings {
            ordered: inner.config.processing.stop_on_first_failure,
            longest_turn,
            handlers: handlers.collect(),
        };
        let config = &inner.config;
        let leases = LeaseTable::new(config.lease(), config.renew_below(), Instant::now());
        Engine::new(
            settings,
            leases,
            Arc::new(Router::new(&inner.registry)),
            inner.registry.renames(),
            inner.partitions,
            usize::try_from(config.processing.max_in_memory).unwrap_or(usize::MAX),
        )
    }
}

/// That a dispatcher of an outbox runs. Taken by [`Outbox::start`], given back when it is dropped.
struct Running(Arc<AtomicBool>);

impl Running {
    fn new(running: &Arc<AtomicBool>) -> Option<Self> {
        let was = running.swap(true, Ordering::AcqRel);
        (!was).then(|| Self(Arc::clone(running)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// That the dispatcher's task lives. Dropped with it, also by a panic.
struct Beating(Arc<Liveness>);

impl Beating {
    fn new(heart: Arc<Liveness>) -> Self {
        heart.starts();
        Self(heart)
    }
}

impl Drop for Beating {
    fn drop(&mut self) {
        self.0.ends();
    }
}

/// How many invocations of one handler run at once, unless it says otherwise.
const PLACES: u32 = 256;

/// How many records of a lane are handed out at once: enough that the way to the handler and back
/// costs little beside them.
const LONGEST_TURN: usize = 32;

/// A running dispatcher; see [`Outbox::start`].
///
/// Dropped without [`shutdown`](Self::shutdown) it stops at once: what ran is delivered again, by
/// others as soon as they find out, as if the process had died.
#[must_use = "dropping it stops the dispatcher; keep it and call `shutdown`"]
pub struct Dispatcher {
    stop: Option<oneshot::Sender<Duration>>,
    task: JoinHandle<()>,
}

impl Dispatcher {
    /// Stops: reads no more, lets the running handlers finish for up to 25 seconds, writes what
    /// became of their records and hands its partitions over. Nothing counts as a failure; what
    /// was not finished is delivered again.
    ///
    /// # Errors
    /// When the dispatcher had panicked.
    pub async fn shutdown(self) -> Result<()> {
        self.shutdown_within(SHUTDOWN).await
    }

    /// The same with another limit.
    ///
    /// # Errors
    /// When the dispatcher had panicked.
    pub async fn shutdown_within(mut self, limit: Duration) -> Result<()> {
        if let Some(stop) = self.stop.take() {
            // An error means that it has ended already.
            let _ = stop.send(limit);
        }
        match (&mut self.task).await {
            Err(error) if error.is_panic() => Err(Error::DispatcherPanicked),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("running", &!self.task.is_finished())
            .finish_non_exhaustive()
    }
}
