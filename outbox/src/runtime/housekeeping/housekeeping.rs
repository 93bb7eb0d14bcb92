//! [`Housekeeping`]: periodic tasks that no record waits for.

use std::sync::Arc;

use tokio::time::Instant;

use super::{periodic::Periodic, prune, sample::sample};
use crate::{
    outbox::Outbox,
    runtime::{engine::Engine, meters::Gauges, ownership::ClaimOutcome},
    store::Database,
    telemetry::metrics::is_recorded,
};

/// Periodic tasks that no record waits for. The event loop owns it. Dropping it aborts the tasks,
/// which is safe between any two of their statements.
pub(crate) struct Housekeeping<Db: Database> {
    outbox: Outbox<Db>,
    /// `None` after [`stop_pruning`](Self::stop_pruning).
    prune: Option<Periodic>,
    /// `None` if sampling is off or no recorder is installed.
    sample: Option<Periodic>,
    gauges: Arc<Gauges>,
}

impl<Db: Database> Housekeeping<Db> {
    pub(crate) fn new(outbox: Outbox<Db>, now: Instant) -> Self {
        let config = &outbox.inner.config;
        let samples = config.metrics.sampling && is_recorded();
        Self {
            prune: Some(Periodic::new(prune::EVERY, now + prune::EVERY)),
            sample: samples.then(|| Periodic::new(config.metrics.sample_interval, now)),
            gauges: Arc::new(Gauges::new()),
            outbox,
        }
    }

    /// Starts the tasks whose time has come.
    pub(crate) fn start(&mut self, now: Instant, engine: &Engine, running: usize) {
        let (outbox, leases) = (&self.outbox, engine.leases());
        if let Some(task) = &mut self.prune {
            task.start(now, || prune::prune(outbox.clone(), leases.fence()));
        }
        if let Some(task) = &mut self.sample {
            let gauges = &self.gauges;
            if task.start(now, || sample(outbox.clone(), Arc::clone(gauges))) {
                gauges.set_memory(engine.lanes().in_memory(), running);
            }
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let tasks = self.prune.iter().chain(&self.sample);
        tasks.map(Periodic::next_wake).min()
    }

    /// Sets the gauges of partitions and instances after a claim.
    pub(crate) fn set_ownership(&self, outcome: &ClaimOutcome) {
        let (owned, unowned) = (outcome.leases.len(), outcome.view.unowned());
        let instances = outcome.decision.peers + 1;
        self.gauges.set_ownership(owned, unowned, instances);
    }

    pub(crate) fn stop_pruning(&mut self) {
        self.prune = None;
    }

    /// Stops all tasks, and sets the gauges to zero.
    pub(crate) fn stop(&mut self) {
        self.stop_pruning();
        self.sample = None;
        self.gauges.clear();
    }
}
