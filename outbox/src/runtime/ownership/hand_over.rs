//! When partitions are handed over, and how long one may take to drain before it is kept after all.

use std::time::Duration;

use tokio::time::Instant;

/// While a partition drains, its other keys wait for the handlers that still run. A slow handler
/// must not make them wait for long.
const PATIENCE: Duration = Duration::from_secs(2);
/// After that nothing is handed over for this long, then for twice as long, and so on.
const REST: Duration = Duration::from_secs(2);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Written and read by the dispatcher's loop. When it is dropped, so are the partitions.
#[derive(Debug)]
pub(crate) struct HandOver {
    /// Since when something has been draining.
    since: Option<Instant>,
    /// Nothing is handed over before this.
    rests_until: Option<Instant>,
    /// How long it rests the next time.
    rest: Duration,
}

impl Default for HandOver {
    fn default() -> Self {
        Self {
            since: None,
            rests_until: None,
            rest: REST,
        }
    }
}

impl HandOver {
    /// How many partitions to keep open, of a fair share and of those that are held, of which
    /// some are draining.
    pub(crate) fn keep(
        &mut self,
        share: usize,
        held: usize,
        draining: usize,
        now: Instant,
    ) -> usize {
        if held <= share {
            *self = Self::default();
            return held;
        }
        if self.rests_until.is_some_and(|until| now < until) {
            return held;
        }
        self.rests_until = None;
        if draining == 0 {
            self.since = None;
        }
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) >= PATIENCE {
            self.rests(now);
            return held;
        }
        share
    }

    /// What others did not want was taken beyond the share, or does not drain: it is kept for a
    /// while, and served. If the others do not take it when it is offered again, for longer.
    pub(crate) fn rests(&mut self, now: Instant) {
        self.since = None;
        self.rests_until = Some(now + self.rest);
        self.rest = (self.rest * 2).min(LONGEST_REST);
    }

    /// When to look at this again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.since
            .map(|since| since + PATIENCE)
            .or(self.rests_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_drain_is_kept_for_longer_and_longer() {
        let start = Instant::now();
        let secs = |n| start + Duration::from_secs(n);
        let mut hand_over = HandOver::default();
        assert_eq!(hand_over.keep(32, 64, 0, start), 32);
        assert_eq!(hand_over.next(), Some(secs(2)));
        assert_eq!(hand_over.keep(32, 40, 8, secs(1)), 32);
        assert_eq!(hand_over.keep(32, 40, 8, secs(2)), 40);
        assert_eq!(hand_over.next(), Some(secs(4)));
        assert_eq!(hand_over.keep(32, 40, 0, secs(3)), 40);
        assert_eq!(hand_over.keep(32, 40, 0, secs(4)), 32);
        assert_eq!(hand_over.next(), Some(secs(6)));
        assert_eq!(hand_over.keep(32, 40, 8, secs(6)), 40);
        // Twice as long this time.
        assert_eq!(hand_over.next(), Some(secs(10)));
        // The other has gone meanwhile: nothing is to be looked at.
        assert_eq!(hand_over.keep(64, 40, 0, secs(7)), 40);
        assert_eq!(hand_over.next(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_wanted_is_served_for_a_while() {
        let start = Instant::now();
        let secs = |n| start + Duration::from_secs(n);
        let mut hand_over = HandOver::default();
        hand_over.rests(start);
        assert_eq!(hand_over.keep(32, 64, 0, start), 64);
        assert_eq!(hand_over.keep(32, 64, 0, secs(2)), 32);
        hand_over.rests(secs(5));
        assert_eq!(hand_over.keep(32, 64, 0, secs(8)), 64);
        assert_eq!(hand_over.keep(32, 64, 0, secs(9)), 32);
    }
}
