//! The meters of each handler. Handles are made once, when a dispatcher starts. Using one costs an
//! addition, or nothing if no recorder is installed.

use std::borrow::Cow;

use ::metrics::{Counter, Histogram};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::{
    handler::FailureKind,
    registry::{HandlerIx, PerHandler, Registry},
    runtime::lane::{AttemptEnd, Work},
    telemetry::{
        metrics::{Metric, is_recorded, names},
        trace::{BECAUSE, because_index},
    },
};

/// The counters of one handler.
#[derive(Debug)]
pub(super) struct HandlerMeters {
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

impl HandlerMeters {
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

    /// Counts an invocation that ended, of a record that this process still owns.
    pub(super) fn finished(&self, work: &Work, end: &AttemptEnd, now: Timestamp) {
        if end.is_completed() {
            let latency = now.duration_since(work.record.created_at);
            // The two clocks may differ.
            self.latency.record(latency.as_secs_f64().max(0.0));
        }
        let (outcome, failure) = match end {
            AttemptEnd::Handled => (&self.completed, None),
            AttemptEnd::Skipped => (&self.skipped, None),
            AttemptEnd::FellBack(failure) => (&self.fell_back, Some(failure)),
            AttemptEnd::Retry { failure, .. } => (&self.retry, Some(failure)),
            AttemptEnd::Failed { failure, because } => {
                self.causes[because_index(*because)].increment(1);
                (&self.failed, Some(failure))
            }
            // Counts as if it had not run.
            AttemptEnd::NoHandler => return,
        };
        outcome.increment(1);
        if let Some(failure) = failure {
            self.kinds[failure.kind.index()].increment(1);
        }
        if work.attempt.number > 1 {
            self.retries.increment(1);
        }
    }
}

/// The durations of invocations. Workers record them. `None` if no recorder is installed.
#[derive(Debug)]
pub(crate) struct HandlerDurations(Option<PerHandler<Histogram>>);

impl HandlerDurations {
    pub(crate) fn new(registry: &Registry) -> Self {
        let of = |id: &'static str| names::HANDLER_DURATION.histogram([id.into()]);
        Self(is_recorded().then(|| registry.per_handler(|entry| of(entry.id()))))
    }

    /// An invocation starts. Reading the clock is most of the cost of a measurement.
    pub(crate) fn start(&self) -> Option<Instant> {
        self.0.is_some().then(Instant::now)
    }

    pub(crate) fn ended(&self, handler: HandlerIx, started_at: Option<Instant>) {
        if let Some((started_at, histograms)) = started_at.zip(self.0.as_ref()) {
            histograms[handler].record(started_at.elapsed().as_secs_f64());
        }
    }
}
