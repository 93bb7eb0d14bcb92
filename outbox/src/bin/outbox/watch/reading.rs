//! What is seen at one moment, and how fast it changes.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use outbox::{
    Database,
    operations::{BlockedLane, Counts, ErrorCount, Instance, Operations, Precision},
};
use serde::Serialize;

use crate::{
    failure::Failure,
    shape::{CountsShape, InstanceShape, LaneShape},
};

/// How many rates are remembered.
const REMEMBERED: usize = 120;

/// One look.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    taken: Instant,
    pub(crate) counts: Counts,
    newest_record_id: i64,
    pub(crate) oldest: Option<Duration>,
    pub(crate) lanes: Vec<BlockedLane>,
    pub(crate) errors: Vec<ErrorCount>,
    pub(crate) paused: Vec<String>,
    pub(crate) instances: Vec<Instance>,
}

impl Reading {
    pub(crate) async fn take<Db: Database>(
        operations: Operations<'_, Db>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            counts: operations.counts(Precision::Estimated).await?,
            newest_record_id: operations.newest_record_id().await?,
            oldest: operations.oldest_pending_age().await?,
            lanes: operations.blocked_lanes(10).await?,
            errors: operations.counts_by_error(Precision::Exact).await?.items,
            paused: operations.paused().await?,
            instances: operations.instances().await?,
            taken: Instant::now(),
        })
    }

    /// Records that wait to be taken.
    fn queued(&self) -> u64 {
        let counts = &self.counts;
        counts.pending + counts.scheduled + counts.unhandled
    }
}

/// A look, and per second since the one before: published, and taken up by their handlers.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    pub(crate) reading: Reading,
    pub(crate) published: Option<f64>,
    pub(crate) handled: Option<f64>,
}

/// One object per look: counts, rates per second (none at the first look), lag, lanes, instances.
#[derive(Serialize)]
pub(crate) struct Shape<'a> {
    #[serde(flatten)]
    counts: CountsShape,
    oldest_pending_seconds: Option<f64>,
    published_per_second: Option<f64>,
    handled_per_second: Option<f64>,
    lanes: Vec<LaneShape<'a>>,
    paused: &'a [String],
    instances: Vec<InstanceShape>,
}

impl Now {
    pub(crate) fn shape(&self) -> Shape<'_> {
        let reading = &self.reading;
        Shape {
            counts: CountsShape::of(&reading.counts, reading.counts.exact),
            oldest_pending_seconds: reading.oldest.map(|age| age.as_secs_f64()),
            published_per_second: self.published,
            handled_per_second: self.handled,
            lanes: reading.lanes.iter().map(Into::into).collect(),
            paused: &reading.paused,
            instances: reading.instances.iter().map(Into::into).collect(),
        }
    }
}

/// What was seen before.
#[derive(Debug, Default)]
pub(crate) struct History {
    last: Option<Reading>,
    /// Handled per second, the oldest first.
    pub(crate) rates: VecDeque<f64>,
}

impl History {
    /// The next look.
    pub(crate) fn add(&mut self, reading: Reading) -> Now {
        let rates = self.last.as_ref().map(|last| rates(last, &reading));
        if let Some((_, handled)) = rates {
            self.rates.push_back(handled);
            if self.rates.len() > REMEMBERED {
                self.rates.pop_front();
            }
        }
        self.last = Some(reading.clone());
        Now {
            reading,
            published: rates.map(|rates| rates.0),
            handled: rates.map(|rates| rates.1),
        }
    }
}

/// Ids count what was published; what was published and does not wait any more was handled.
#[expect(clippy::cast_precision_loss, reason = "for people: rates")]
fn rates(last: &Reading, now: &Reading) -> (f64, f64) {
    let seconds = now
        .taken
        .duration_since(last.taken)
        .as_secs_f64()
        .max(0.001);
    let published = now.newest_record_id - last.newest_record_id;
    let published = published.max(0) as f64;
    let grown = now.queued() as f64 - last.queued() as f64;
    (published / seconds, (published - grown).max(0.0) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(taken: Instant, newest: i64, pending: u64) -> Reading {
        let mut counts = Counts::default();
        counts.pending = pending;
        Reading {
            taken,
            counts,
            newest_record_id: newest,
            oldest: None,
            lanes: Vec::new(),
            errors: Vec::new(),
            paused: Vec::new(),
            instances: Vec::new(),
        }
    }

    #[test]
    fn what_was_published_and_waits_no_more_was_handled() {
        let start = Instant::now();
        let mut history = History::default();
        let first = history.add(reading(start, 1000, 50));
        assert_eq!((first.published, first.handled), (None, None));
        let then = start + Duration::from_secs(2);
        let second = history.add(reading(then, 1100, 10));
        assert_eq!((second.published, second.handled), (Some(50.0), Some(70.0)));
        // Ids that are never used count as handled; nothing ever counts as less than nothing.
        let last = history.add(reading(then + Duration::from_secs(1), 1100, 500));
        assert_eq!((last.published, last.handled), (Some(0.0), Some(0.0)));
        assert_eq!(history.rates, [70.0, 0.0]);
    }
}
