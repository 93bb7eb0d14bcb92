//! [`HandOver`]: when surplus partitions are drained, and for how long.                     (pure)

use std::time::Duration;

use tokio::time::Instant;

/// While a partition drains, its other keys wait for the handlers that still run. After two seconds
/// it is opened again, so that a slow handler delays them by no more than that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause after that, in which nothing is handed over: two seconds, then four, up to a minute.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// When surplus partitions are handed over. The event loop writes and reads it.
#[derive(Debug, Default)]
pub(crate) struct HandOver {
    draining_since: Option<Instant>,
    /// Nothing is handed over before this time.
    paused_until: Option<Instant>,
    /// How long the last pause was; zero before the first.
    last_pause: Duration,
}

impl HandOver {
    /// How many partitions to keep open. Of the `owned` partitions `draining` are closed already;
    /// `share` is the fair share.
    pub(crate) fn partitions_to_keep(
        &mut self,
        share: usize,
        owned: usize,
        draining: usize,
        now: Instant,
    ) -> usize {
        if owned <= share {
            *self = Self::default();
            return owned;
        }
        if self.paused_until.is_some_and(|until| now < until) {
            return owned;
        }
        self.paused_until = None;
        if draining == 0 {
            self.draining_since = None;
        }
        let since = *self.draining_since.get_or_insert(now);
        if now.duration_since(since) >= DRAIN_TIMEOUT {
            self.pause(now);
            return owned;
        }
        share
    }

    /// Keeps all partitions for a while, because no peer took the surplus ones, or because they do
    /// not drain. The pause doubles each time.
    pub(crate) fn pause(&mut self, now: Instant) {
        self.draining_since = None;
        self.last_pause = (self.last_pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.paused_until = Some(now + self.last_pause);
    }

    pub(crate) fn next_check(&self) -> Option<Instant> {
        let drained_by = self.draining_since.map(|since| since + DRAIN_TIMEOUT);
        drained_by.or(self.paused_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pause_doubles_when_partitions_do_not_drain() {
        let start = Instant::now();
        let secs = |n| start + Duration::from_secs(n);
        let mut hand_over = HandOver::default();
        assert_eq!(hand_over.partitions_to_keep(32, 64, 0, start), 32);
        assert_eq!(hand_over.next_check(), Some(secs(2)));
        assert_eq!(hand_over.partitions_to_keep(32, 40, 8, secs(1)), 32);
        assert_eq!(hand_over.partitions_to_keep(32, 40, 8, secs(2)), 40);
        assert_eq!(hand_over.next_check(), Some(secs(4)));
        assert_eq!(hand_over.partitions_to_keep(32, 40, 0, secs(3)), 40);
        assert_eq!(hand_over.partitions_to_keep(32, 40, 0, secs(4)), 32);
        assert_eq!(hand_over.next_check(), Some(secs(6)));
        assert_eq!(hand_over.partitions_to_keep(32, 40, 8, secs(6)), 40);
        // The pause is twice as long this time.
        assert_eq!(hand_over.next_check(), Some(secs(10)));
        // The other instance has left meanwhile.
        assert_eq!(hand_over.partitions_to_keep(64, 40, 0, secs(7)), 40);
        assert_eq!(hand_over.next_check(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn partitions_that_no_peer_took_are_kept_for_a_while() {
        let start = Instant::now();
        let secs = |n| start + Duration::from_secs(n);
        let mut hand_over = HandOver::default();
        hand_over.pause(start);
        assert_eq!(hand_over.partitions_to_keep(32, 64, 0, start), 64);
        assert_eq!(hand_over.partitions_to_keep(32, 64, 0, secs(2)), 32);
        hand_over.pause(secs(5));
        assert_eq!(hand_over.partitions_to_keep(32, 64, 0, secs(8)), 64);
        assert_eq!(hand_over.partitions_to_keep(32, 64, 0, secs(9)), 32);
    }
}
