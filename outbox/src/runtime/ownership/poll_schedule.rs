//! How often to look for signs, and when to sleep until told: pure arithmetic on instants.

use std::time::Duration;

use tokio::time::Instant;

use crate::store::PollResult;

/// Right after something has changed.
const SHORTEST: Duration = Duration::from_millis(10);
/// Less often, the longer nothing has changed: after this part of that time.
const PART: u32 = 16;
/// Where the database tells those who sleep: after this long without a change.
const SLEEPY: Duration = Duration::from_millis(300);
/// More often than this in a second it is cheaper to look than to be told: telling makes commits
/// wait for each other.
const TOLD_TOO_OFTEN: u32 = 20;
/// Asleep, but with others that might die.
const WITH_PEERS: Duration = Duration::from_millis(300);
/// Asleep and alone. This process stops to trust in its session before that, and asks for a look
/// when there is something to start.
const ALONE: Duration = Duration::from_secs(5);
/// Somebody may have died.
const SUSPICIOUS: Duration = Duration::from_millis(100);

/// Written and read by the watcher.
#[derive(Debug)]
pub(super) struct PollSchedule {
    /// The longest time between two looks while awake.
    longest: Duration,
    /// Between two looks while asleep and alone.
    poll: Duration,
    listens: bool,
    asleep: bool,
    /// How many looks in a row, since it fell asleep, found nobody writing.
    quiet: u8,
    /// When something changed last, as far as is known.
    changed: Instant,
    /// How often it was told something since then.
    told: (Instant, u32),
}

impl PollSchedule {
    pub(super) fn new(longest: Duration, poll: Duration, listens: bool, now: Instant) -> Self {
        Self {
            longest: longest.min(poll),
            poll: poll.min(ALONE),
            listens,
            asleep: false,
            quiet: 0,
            changed: now,
            told: (now, 0),
        }
    }

    pub(super) fn changed(&mut self, now: Instant) {
        self.changed = now;
    }

    /// Whether to ask to be told. Who was writing before that does not tell, so it looks twice
    /// more: first nobody must be writing any more, and then what they wrote can be seen.
    pub(super) fn falls_asleep(&mut self, tick: &PollResult, now: Instant) -> bool {
        let idle = now.duration_since(self.changed) >= SLEEPY;
        let falls = self.listens && !self.asleep && idle && !tick.writing;
        if falls {
            self.asleep = true;
            self.quiet = 0;
        }
        falls
    }

    /// Nobody tells it anything any more.
    pub(super) fn wakes(&mut self) {
        self.asleep = false;
    }

    /// It was told something. Whether it is to be told nothing more.
    pub(super) fn wakes_up(&mut self, now: Instant) -> bool {
        let (since, times) = &mut self.told;
        if now.duration_since(*since) > Duration::from_secs(1) {
            (*since, *times) = (now, 0);
        }
        *times += 1;
        let wakes = self.asleep && *times > TOLD_TOO_OFTEN;
        if wakes {
            self.asleep = false;
            self.changed = now;
        }
        wakes
    }

    /// How long to wait for the next look after this one.
    pub(super) fn gap(&mut self, tick: &PollResult, suspicious: bool, now: Instant) -> Duration {
        self.quiet = match self.asleep && !tick.writing {
            true => self.quiet.saturating_add(1),
            false => 0,
        };
        let gap = match self.quiet {
            2.. if tick.peers > 0 => WITH_PEERS.min(self.poll),
            2.. => self.poll,
            1 => Duration::ZERO,
            0 => {
                let idle = now.duration_since(self.changed);
                (idle / PART).max(SHORTEST).min(self.longest)
            }
        };
        match suspicious {
            true => gap.min(SUSPICIOUS),
            false => gap,
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
    async fn it_looks_less_and_less_often() {
        let start = Instant::now();
        let mut rhythm = PollSchedule::new(LONGEST, POLL, false, start);
        let mut gap = |after| rhythm.gap(&PollResult::default(), false, start + after);
        assert_eq!(gap(ms(0)), ms(10));
        assert_eq!(gap(ms(320)), ms(20));
        assert_eq!(gap(ms(60_000)), LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn it_sleeps_only_where_it_is_told_and_nobody_writes() {
        let start = Instant::now();
        let (quiet, writing) = (
            PollResult::default(),
            PollResult {
                writing: true,
                ..PollResult::default()
            },
        );
        let mut deaf = PollSchedule::new(LONGEST, POLL, false, start);
        assert!(!deaf.falls_asleep(&quiet, start + POLL));
        let mut rhythm = PollSchedule::new(LONGEST, POLL, true, start);
        assert!(!rhythm.falls_asleep(&quiet, start + ms(100)));
        assert!(!rhythm.falls_asleep(&writing, start + ms(400)));
        assert!(rhythm.falls_asleep(&quiet, start + ms(500)));
        assert!(!rhythm.falls_asleep(&quiet, start + ms(500)), "once");
        // It began to write before it could know that somebody sleeps.
        let gap = |rhythm: &mut PollSchedule, tick| rhythm.gap(tick, false, start + ms(500));
        assert_eq!(gap(&mut rhythm, &writing), ms(500) / PART);
        // It has ended, perhaps after this look saw what there is.
        assert_eq!(gap(&mut rhythm, &quiet), Duration::ZERO);
        assert_eq!(gap(&mut rhythm, &quiet), ALONE);
        assert_eq!(gap(&mut rhythm, &writing), ms(500) / PART);
        assert_eq!(gap(&mut rhythm, &quiet), Duration::ZERO);
        let peers = PollResult {
            peers: 1,
            ..PollResult::default()
        };
        assert_eq!(rhythm.gap(&peers, false, start + ms(500)), WITH_PEERS);
        assert_eq!(rhythm.gap(&peers, true, start + ms(500)), SUSPICIOUS);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_too_often_wakes_up() {
        let start = Instant::now();
        for (gap, woken) in [(60, None), (1, Some(20))] {
            let mut rhythm = PollSchedule::new(LONGEST, POLL, true, start);
            assert!(rhythm.falls_asleep(&PollResult::default(), start + POLL));
            let mut told = (0..100).map(|n| start + POLL + ms(n * gap));
            assert_eq!(told.position(|now| rhythm.wakes_up(now)), woken);
            let mut gap = || rhythm.gap(&PollResult::default(), false, start + POLL);
            let awake = (gap(), gap()).1 < ALONE;
            assert_eq!(awake, woken.is_some());
        }
    }
}
