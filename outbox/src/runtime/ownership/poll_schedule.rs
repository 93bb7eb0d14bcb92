//! [`PollSchedule`]: how often the watcher polls, and when it listens instead.             (pure)

use std::time::Duration;

use tokio::time::Instant;

use crate::store::PollResult;

/// The gap between two polls right after something changed.
const SHORTEST_GAP: Duration = Duration::from_millis(10);
/// The gap grows with the time since the last change: it is that time divided by 16.
const IDLE_DIVISOR: u32 = 16;
/// If the database has notifications, the watcher listens after 300 ms without a change.
const IDLE_BEFORE_LISTENING: Duration = Duration::from_millis(300);
/// Above 20 notifications a second polling is cheaper: `NOTIFY` makes commits wait for each other.
const MAX_NOTIFICATIONS: u32 = 20;
/// The gap while listening, with peers whose sessions might end.
const GAP_WITH_PEERS: Duration = Duration::from_millis(300);
/// The gap while listening without peers. The session is not verified for most of that time; the
/// event loop asks for a poll when it has work to start.
const GAP_ALONE: Duration = Duration::from_secs(5);
/// The gap while the session of a peer is missing.
const GAP_SUSPECT: Duration = Duration::from_millis(100);

/// The times of polls. The watcher writes and reads it, and drops it with the connection.
#[derive(Debug)]
pub(super) struct PollSchedule {
    /// The longest gap while not listening.
    longest_gap: Duration,
    /// The gap while listening without peers.
    gap_alone: Duration,
    has_notifications: bool,
    is_listening: bool,
    /// How many polls in a row, while listening, found no open transaction that may have published.
    quiet_polls: u8,
    /// The time of the last known change.
    changed_at: Instant,
    /// The notifications of one second, and when that second began.
    notifications: (Instant, u32),
}

impl PollSchedule {
    pub(super) fn new(
        longest_gap: Duration,
        poll_interval: Duration,
        has_notifications: bool,
        now: Instant,
    ) -> Self {
        Self {
            longest_gap: longest_gap.min(poll_interval),
            gap_alone: poll_interval.min(GAP_ALONE),
            has_notifications,
            is_listening: false,
            quiet_polls: 0,
            changed_at: now,
            notifications: (now, 0),
        }
    }

    pub(super) fn changed(&mut self, now: Instant) {
        self.changed_at = now;
    }

    /// Whether to ask publishers for notifications now. A transaction that published before that
    /// does not notify, so two more polls follow: the first must find no open transaction, and the
    /// second sees the records that the last of them committed.
    pub(super) fn start_listening(&mut self, poll: &PollResult, now: Instant) -> bool {
        let is_idle = now.duration_since(self.changed_at) >= IDLE_BEFORE_LISTENING;
        let starts =
            self.has_notifications && !self.is_listening && is_idle && !poll.has_open_writers;
        if starts {
            self.is_listening = true;
            self.quiet_polls = 0;
        }
        starts
    }

    /// Publishers no longer notify this instance.
    pub(super) fn stop_listening(&mut self) {
        self.is_listening = false;
    }

    /// A publisher sent a notification. Returns whether to ask for no more of them.
    pub(super) fn notified(&mut self, now: Instant) -> bool {
        let (since, count) = &mut self.notifications;
        if now.duration_since(*since) > Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        let stops = self.is_listening && *count > MAX_NOTIFICATIONS;
        if stops {
            self.is_listening = false;
            self.changed_at = now;
        }
        stops
    }

    /// The time from this poll to the next.
    pub(super) fn next_gap(
        &mut self,
        poll: &PollResult,
        has_suspects: bool,
        now: Instant,
    ) -> Duration {
        self.quiet_polls = if self.is_listening && !poll.has_open_writers {
            self.quiet_polls.saturating_add(1)
        } else {
            0
        };
        let gap = match self.quiet_polls {
            2.. if poll.peers > 0 => GAP_WITH_PEERS.min(self.gap_alone),
            2.. => self.gap_alone,
            1 => Duration::ZERO,
            0 => {
                let gap = now.duration_since(self.changed_at) / IDLE_DIVISOR;
                gap.max(SHORTEST_GAP).min(self.longest_gap)
            }
        };
        if has_suspects {
            gap.min(GAP_SUSPECT)
        } else {
            gap
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(5);
    const LONGEST: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[tokio::test(start_paused = true)]
    async fn the_gap_grows_while_nothing_changes() {
        let start = Instant::now();
        let mut schedule = PollSchedule::new(LONGEST, POLL, false, start);
        let mut gap = |after| schedule.next_gap(&PollResult::default(), false, start + after);
        assert_eq!(gap(ms(0)), ms(10));
        assert_eq!(gap(ms(320)), ms(20));
        assert_eq!(gap(ms(60_000)), LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn it_listens_only_with_notifications_and_without_open_writers() {
        let start = Instant::now();
        let (quiet, writing) = (
            PollResult::default(),
            PollResult {
                has_open_writers: true,
                ..PollResult::default()
            },
        );
        let mut never = PollSchedule::new(LONGEST, POLL, false, start);
        assert!(!never.start_listening(&quiet, start + POLL));
        let mut schedule = PollSchedule::new(LONGEST, POLL, true, start);
        assert!(!schedule.start_listening(&quiet, start + ms(100)));
        assert!(!schedule.start_listening(&writing, start + ms(400)));
        assert!(schedule.start_listening(&quiet, start + ms(500)));
        assert!(!schedule.start_listening(&quiet, start + ms(500)), "once");
        // A transaction began to write before it could see that this instance listens.
        let gap =
            |schedule: &mut PollSchedule, poll| schedule.next_gap(poll, false, start + ms(500));
        assert_eq!(gap(&mut schedule, &writing), ms(500) / IDLE_DIVISOR);
        // It ended, perhaps after this poll had read the records.
        assert_eq!(gap(&mut schedule, &quiet), Duration::ZERO);
        assert_eq!(gap(&mut schedule, &quiet), GAP_ALONE);
        assert_eq!(gap(&mut schedule, &writing), ms(500) / IDLE_DIVISOR);
        assert_eq!(gap(&mut schedule, &quiet), Duration::ZERO);
        let peers = PollResult {
            peers: 1,
            ..PollResult::default()
        };
        assert_eq!(
            schedule.next_gap(&peers, false, start + ms(500)),
            GAP_WITH_PEERS
        );
        assert_eq!(
            schedule.next_gap(&peers, true, start + ms(500)),
            GAP_SUSPECT
        );
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_notifications_end_listening() {
        let start = Instant::now();
        for (gap, stops) in [(60, None), (1, Some(20))] {
            let mut schedule = PollSchedule::new(LONGEST, POLL, true, start);
            assert!(schedule.start_listening(&PollResult::default(), start + POLL));
            let mut notified = (0..100).map(|n| start + POLL + ms(n * gap));
            assert_eq!(notified.position(|now| schedule.notified(now)), stops);
            let mut gap = || schedule.next_gap(&PollResult::default(), false, start + POLL);
            let polls = (gap(), gap()).1 < GAP_ALONE;
            assert_eq!(polls, stops.is_some());
        }
    }
}
