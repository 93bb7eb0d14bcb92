//! [`Outbox::start`], and [`Dispatcher`], the handle that a program keeps.

use std::{fmt, sync::Arc, sync::atomic::Ordering, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle, time::Instant};
use uuid::Uuid;

use super::{engine::Engine, event_loop::EventLoop};
use crate::{
    outbox::{DbContext as _, Error, Operation, Outbox, Result, Shared},
    registry::{HandlerEntry, PermanentFailure, route::Router},
    runtime::{lane, ownership::LeaseTable},
    store::Database,
};

/// How long [`Dispatcher::shutdown`] lets handlers finish. Orchestrators kill a process after 30 s.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(25);

impl<Db: Database> Outbox<Db> {
    /// Starts to deliver records to the handlers of this process. Install a recorder of
    /// [metrics](crate::telemetry::metrics) before this call.
    ///
    /// # Errors
    /// The database cannot be reached, there is no handler, or a dispatcher of this outbox runs
    /// already. A dispatcher that runs waits until the database is back.
    pub async fn start(&self) -> Result<Dispatcher> {
        if self.inner.registry.entries().is_empty() {
            return Err(Error::NothingToDispatch);
        }
        if self.inner.is_running.swap(true, Ordering::AcqRel) {
            return Err(Error::AlreadyRunning);
        }
        let running = RunningGuard(Arc::clone(&self.inner));
        self.inner.read_partitions().await?;
        let event_loop = EventLoop::start(self.clone()).await;
        let event_loop = event_loop.during(Operation::Claim)?;
        self.inner.liveness.started();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            // Dropped with the task, also after a panic.
            let _running = running;
            event_loop.run(stopped).await;
        });
        Ok(Dispatcher { stop, task })
    }

    pub(crate) fn engine(&self, owner: Uuid) -> Engine {
        // A handler that takes a `Tx` holds a connection of the pool while it runs. One handler
        // uses half of the pool at most.
        let connections = self.inner.pool.options().get_max_connections();
        let concurrency = |entry: &HandlerEntry| {
            let (is_transactional, half) = (entry.transactions.any(), (connections / 2).max(1));
            let limit = if is_transactional { half } else { u32::MAX };
            entry
                .concurrency()
                .unwrap_or(DEFAULT_CONCURRENCY.min(limit))
        };
        self.engine_with_limits(owner, concurrency, MAX_BURST)
    }

    /// `concurrency`: how many invocations of a handler may run at once. `max_burst`: how many
    /// records a lane may run with one slot.
    pub(crate) fn engine_with_limits(
        &self,
        owner: Uuid,
        concurrency: impl Fn(&HandlerEntry) -> u32,
        max_burst: usize,
    ) -> Engine {
        let inner = &self.inner;
        let handlers = inner.registry.per_handler(|entry| lane::HandlerSettings {
            id: entry.id(),
            concurrency: concurrency(entry),
            is_transactional: entry.transactions.any(),
            skips_failed: entry.on_permanent_failure() == PermanentFailure::Skip,
        });
        let lanes = lane::LaneSettings {
            stop_on_failure: inner.config.processing.stop_on_first_failure,
            max_burst,
            handlers,
        };
        let config = &inner.config;
        let leases = LeaseTable::new(owner, config.lease(), config.renew_below(), Instant::now());
        let router = Router::new(&inner.registry);
        let max_records = usize::try_from(config.processing.max_in_memory).unwrap_or(usize::MAX);
        Engine::new(lanes, leases, router, inner.known_partitions(), max_records)
    }
}

/// Exists while a dispatcher of the outbox runs. After it is dropped, another one may start.
struct RunningGuard<Db: Database>(Arc<Shared<Db>>);

impl<Db: Database> Drop for RunningGuard<Db> {
    fn drop(&mut self) {
        self.0.liveness.stopped();
        self.0.is_running.store(false, Ordering::Release);
    }
}

/// How many invocations of one handler run at once, unless its registration says otherwise.
const DEFAULT_CONCURRENCY: u32 = 256;

/// The longest burst, in records. The round trip to a worker costs little compared with 32
/// invocations.
const MAX_BURST: usize = 32;

/// A running dispatcher; see [`Outbox::start`].
///
/// If it is dropped without [`shutdown`](Self::shutdown), it stops at once, as if the process had
/// died. Peers notice that, and deliver the unfinished records again.
#[must_use = "dropping it stops the dispatcher; keep it and call `shutdown`"]
pub struct Dispatcher {
    stop: oneshot::Sender<Duration>,
    task: JoinHandle<()>,
}

impl Dispatcher {
    /// Stops the dispatcher. It fetches no more records, lets the running handlers finish for up to
    /// 25 seconds, writes their results and hands its partitions over. A handler that is cancelled
    /// has not failed; its record is delivered again.
    ///
    /// # Errors
    /// The dispatcher had panicked.
    pub async fn shutdown(self) -> Result<()> {
        self.shutdown_within(SHUTDOWN_GRACE).await
    }

    /// Like [`shutdown`](Self::shutdown), with another limit.
    ///
    /// # Errors
    /// The dispatcher had panicked.
    pub async fn shutdown_within(self, limit: Duration) -> Result<()> {
        // An error means that the event loop has ended already.
        let _ = self.stop.send(limit);
        match self.task.await {
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
