//! Gauges: what this process has in memory, and, beside everything else, a look at the database.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use crate::outbox::error::Operation;
use crate::runtime::event_loop::Run;
use crate::{outbox::clock::YEAR, runtime::meters::database_error, store::Database};

/// A look takes milliseconds; one that takes this long is given up.
const LIMIT: Duration = Duration::from_secs(5);

impl<Db: Database> Run<Db> {
    /// When gauges are to be looked at next.
    pub(in crate::runtime) fn sample_at(&self) -> Option<Instant> {
        let interval = self.outbox.inner.config.metrics.sample_interval.min(YEAR);
        let then = self.sampled_at.map(|at| at + interval);
        then.filter(|_| self.samples)
    }

    /// Takes a look, if it is time.
    pub(in crate::runtime) fn start_sampling(&mut self, now: Instant) {
        let due = self.sample_at().is_none_or(|then| now >= then);
        if !self.samples || !due {
            return;
        }
        self.sampled_at = Some(now);
        let in_memory = self.engine.lanes.in_flight();
        self.gauges.in_memory(in_memory, self.running.len());
        let busy = self.sampling.as_ref();
        if busy.is_some_and(|sampling| !sampling.is_finished()) {
            return;
        }
        let (outbox, gauges) = (self.outbox.clone(), Arc::clone(&self.gauges));
        self.sampling = Some(tokio::spawn(async move {
            match timeout(LIMIT, outbox.operations().overview()).await {
                Ok(Ok(overview)) => gauges.saw(&overview),
                // The dispatcher says so when it fails itself; the gauges stay as they are.
                Ok(Err(_)) | Err(_) => database_error(Operation::Sample),
            }
        }));
    }

    /// What is shown from now on is that nothing is known.
    pub(in crate::runtime) fn stop_sampling(&mut self) {
        if let Some(sampling) = self.sampling.take() {
            sampling.abort();
        }
        self.gauges.ended();
    }
}
