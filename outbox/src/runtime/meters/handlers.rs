//! What is counted of each handler. Handles are made once, when a dispatcher starts: using one is
//! an addition, or nothing where no recorder is installed.

use std::borrow::Cow;

use ::metrics::{Counter, Histogram};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::telemetry::{
    metrics::{Metric, is_recorded, names},
    trace::{BECAUSE, because_index},
};
use crate::{
    handler::{FailureKind, HandlerError},
    registry::Registry,
    retry::{Completion, Decision},
    runtime::lane::{HandlerIx, Work},
};

/// One handler's.
#[derive(Debug)]
pub(super) struct OfHandler {
    completed: Counter,
    skipped: Counter,
    fell_back: Counter,
    retry: Counter,
    failed: Counter,
    retries: Counter,
    /// In the order of [`FailureKind::NAMES`].
    kinds: [Counter; FailureKind::NAMES.len()],
    /// In the order of [`BECAUSE`].
    causes: [Counter; BECAUSE.len()],
    latency: Histogram,
}

impl OfHandler {
    pub(super) fn new(handler: &'static str) -> Self {
        let of = |metric: &Metric, value: &'static str| {
            metric.counter([Cow::Borrowed(handler), Cow::Borrowed(value)])
        };
        let outcome = |outcome| of(&names::ATTEMPTS, outcome);
        Self {
            completed: outcome("completed"),
            skipped: outcome("skipped"),
            fell_back: outcome("fell_back"),
            retry: outcome("retry"),
            failed: outcome("failed"),
            retries: names::RETRIES.counter([handler.into()]),
            kinds: FailureKind::NAMES.map(|kind| of(&names::FAILED_ATTEMPTS, kind)),
            causes: BECAUSE.map(|cause| of(&names::PERMANENT_FAILURES, cause)),
            latency: names::DELIVERY_LATENCY.histogram([handler.into()]),
        }
    }

    /// An invocation ended, of a record that is still ours.
    pub(super) fn answered(&self, work: &Work, decision: &Decision, now: Timestamp) {
        let outcome = match decision {
            Decision::Completed(completion) => {
                let latency = now.duration_since(work.record.created_at);
                // The two clocks may differ.
                self.latency.record(latency.as_secs_f64().max(0.0));
                match completion {
                    Completion::Handled => &self.completed,
                    Completion::Skipped => &self.skipped,
                    Completion::FellBack { error, .. } => {
                        self.failed_as(error);
                        &self.fell_back
                    }
                }
            }
            Decision::RetryAt { error, .. } => {
                self.failed_as(error);
                &self.retry
            }
            Decision::Failed { error, because } => {
                self.failed_as(error);
                self.causes[because_index(*because)].increment(1);
                &self.failed
            }
            // As if it had not run.
            Decision::NoHandler(_) => return,
        };
        outcome.increment(1);
        if work.attempt.number > 1 {
            self.retries.increment(1);
        }
    }

    fn failed_as(&self, error: &HandlerError) {
        self.kinds[error.kind().index()].increment(1);
    }
}

/// How long invocations take; for those who run them. Empty if nobody wants to know.
#[derive(Debug)]
pub(crate) struct Durations(Vec<Histogram>);

impl Durations {
    pub(crate) fn new(registry: &Registry) -> Self {
        let entries = match is_recorded() {
            true => registry.entries(),
            false => &[],
        };
        let ids = entries.iter().map(|entry| entry.id());
        let of = |id: &'static str| names::HANDLER_DURATION.histogram([id.into()]);
        Self(ids.map(of).collect())
    }

    /// An invocation begins. Reading the clock is most of what measuring costs.
    pub(crate) fn begin(&self) -> Option<Instant> {
        (!self.0.is_empty()).then(Instant::now)
    }

    pub(crate) fn took(&self, handler: HandlerIx, begun: Option<Instant>) {
        if let Some((begun, histogram)) = begun.zip(self.0.get(usize::from(handler))) {
            histogram.record(begun.elapsed().as_secs_f64());
        }
    }
}
