//! [`Rates`]: how fast records are published and handled.

use std::{collections::VecDeque, time::Instant};

use crate::snapshot::Snapshot;

/// How many rates the chart can show.
const KEPT: usize = 120;

/// Records per second between the last two snapshots. None before the second snapshot.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    pub(crate) published: Option<f64>,
    pub(crate) handled: Option<f64>,
    /// The values of `handled`, the oldest first.
    pub(crate) history: VecDeque<f64>,
    last: Option<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    taken_at: Instant,
    newest_record_id: i64,
    /// Records that no handler has started with.
    queued: u64,
}

impl Rates {
    #[expect(clippy::cast_precision_loss, reason = "people read the rates")]
    pub(crate) fn add(&mut self, snapshot: &Snapshot, taken_at: Instant) {
        let counts = &snapshot.counts;
        let sample = Sample {
            taken_at,
            newest_record_id: snapshot.newest_record_id,
            queued: counts.pending + counts.scheduled + counts.unhandled,
        };
        let Some(last) = self.last.replace(sample) else {
            return;
        };
        let seconds = (taken_at - last.taken_at).as_secs_f64().max(0.001);
        // The ids grow with each published record.
        let published = (sample.newest_record_id - last.newest_record_id).max(0) as f64;
        // A record that was published and is not queued was handled.
        let growth = sample.queued as f64 - last.queued as f64;
        let handled = (published - growth).max(0.0) / seconds;
        self.published = Some(published / seconds);
        self.handled = Some(handled);
        self.history.push_back(handled);
        if self.history.len() > KEPT {
            self.history.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn snapshot(newest_record_id: i64, pending: u64) -> Snapshot {
        let mut snapshot = Snapshot {
            newest_record_id,
            ..Snapshot::default()
        };
        snapshot.counts.pending = pending;
        snapshot
    }

    #[test]
    fn a_record_that_was_published_and_is_not_queued_was_handled() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut rates = Rates::default();
        rates.add(&snapshot(1000, 50), start);
        assert_eq!((rates.published, rates.handled), (None, None));
        rates.add(&snapshot(1100, 10), after(2));
        assert_eq!((rates.published, rates.handled), (Some(50.0), Some(70.0)));
        // A rate is never negative.
        rates.add(&snapshot(1100, 500), after(3));
        assert_eq!((rates.published, rates.handled), (Some(0.0), Some(0.0)));
        assert_eq!(rates.history, [70.0, 0.0]);
    }
}
