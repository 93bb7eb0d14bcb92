//! How long a partition may take to drain before it is kept after all.

use std::time::Duration;

use tokio::time::Instant;

/// While a partition drains, its other keys wait for the handlers that still run. A slow handler
/// must not make them wait for long.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);

/// Written and read by the dispatcher's loop. When it is dropped, so are the partitions.
#[derive(Debug)]
pub(crate) struct HandOver {
    /// Since when something has been draining.
    since: Option<Instant>,
    /// How long this time.
    patience: Duration,
    /// Nothing is handed over before this.
    rests_until: Option<Instant>,
}

impl Default for HandOver {
    fn default() -> Self {
        Self {
            since: None,
            patience: PATIENCE,
            rests_until: None,
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
        if draining == 0 && self.since.take().is_some() {
            self.patience = PATIENCE;
        }
        if held <= share {
            self.since = None;
            return share.min(held);
        }
        if self.rests_until.is_some_and(|until| now < until) {
            return held;
        }
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) >= self.patience {
            // As long as they have waited, the others go on.
            self.rests_until = Some(now + self.patience);
            self.patience = (self.patience * 2).min(LONGEST);
            self.since = None;
            return held;
        }
        share
    }

    /// When to look at this again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.since
            .map(|since| since + self.patience)
            .or(self.rests_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_drain_is_kept_for_as_long_as_it_was_waited_for() {
        let start = Instant::now();
        let secs = |n| start + Duration::from_secs(n);
        let mut hand_over = HandOver::default();
        assert_eq!(hand_over.keep(32, 64, 0, start), 32);
        assert_eq!(hand_over.next(), Some(secs(2)));
        assert_eq!(hand_over.keep(32, 40, 8, secs(1)), 32);
        assert_eq!(hand_over.keep(32, 40, 8, secs(2)), 40);
        assert_eq!(hand_over.keep(32, 40, 0, secs(3)), 40);
        assert_eq!(hand_over.keep(32, 40, 0, secs(4)), 32);
        // Twice as long this time.
        assert_eq!(hand_over.keep(32, 40, 8, secs(7)), 32);
        assert_eq!(hand_over.keep(32, 40, 8, secs(8)), 40);
        // The other has gone meanwhile.
        assert_eq!(hand_over.keep(64, 40, 0, secs(9)), 40);
    }
}
