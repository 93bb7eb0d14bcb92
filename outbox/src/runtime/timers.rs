//! When the dispatcher does what: pure arithmetic on instants.

use std::time::Duration;

use tokio::time::Instant;

/// Something was published here and may be committed at any moment: look after this long, then
/// after twice that, and so on.
const FIRST_PROBE: Duration = Duration::from_millis(1);
/// But not less often than this, until it is left to the poll.
const LONGEST_PROBE: Duration = Duration::from_millis(500);
/// How often to look for late committers.
const LATE_EVERY: Duration = Duration::from_millis(400);
/// How often to read everything again.
const SWEEP_EVERY: Duration = Duration::from_secs(120);
/// Overdue, and already in memory or without room: not again before this.
const DUE_AGAIN: Duration = Duration::from_millis(50);

/// First what is pending, then what is due.
const DUE_AFTER: Duration = Duration::from_millis(100);

const LONGEST_DUE_AGAIN: Duration = Duration::from_millis(800);

/// Why all partitions are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runtime) enum Poll {
    /// Something was published, or may have been.
    Prompted,
    /// It is time, and nothing says that there is anything.
    Unprompted,
}

/// When what is to be done next. Written by the dispatcher's loop only.
#[derive(Debug)]
pub(in crate::runtime) struct Timers {
    poll_interval: Duration,
    poll: Instant,
    /// Whether something says that the next poll will find something.
    prompted: bool,
    due: Instant,
    due_gap: Duration,
    late: Option<Instant>,
    sweep: Instant,
    probe: Option<(Instant, Duration)>,
    /// When something was published here last.
    published_at: Option<Instant>,
    /// Whether probing also looks for what is due, and so when the next of it is.
    probes_due: bool,
    /// After an error: nothing before this.
    not_before: Instant,
}

impl Timers {
    pub(in crate::runtime) fn new(poll_interval: Duration, now: Instant) -> Self {
        Self {
            poll_interval,
            poll: now,
            prompted: true,
            due: now,
            late: None,
            sweep: now,
            probe: None,
            published_at: None,
            due_gap: DUE_AGAIN,
            probes_due: false,
            not_before: now,
        }
    }

    /// Something was published; its transaction will end soon.
    pub(in crate::runtime) fn published(&mut self, now: Instant) {
        // Not later than it would have been: who publishes all the time must not put it off.
        let at = now + FIRST_PROBE;
        let at = self.probe.map_or(at, |(probe, _)| probe.min(at));
        self.probe = Some((at, FIRST_PROBE));
        self.published_at = Some(now);
    }

    /// The same, of something that is due later: without a look after the commit, nobody here
    /// would know when.
    pub(in crate::runtime) fn scheduled(&mut self, now: Instant) {
        self.published(now);
        self.probes_due = true;
    }

    /// Everything is to be looked at now.
    pub(in crate::runtime) fn all(&mut self, now: Instant) {
        self.poll = now;
        self.prompted = true;
        self.due = now;
    }

    /// Records were committed, and some of them may be due at a later time.
    pub(in crate::runtime) fn records(&mut self, now: Instant) {
        self.poll = now;
        self.prompted = true;
        self.due_in(now, DUE_AFTER);
    }

    /// Everything is to be read again now.
    pub(in crate::runtime) fn sweep(&mut self, now: Instant) {
        self.all(now);
        self.sweep = now;
    }

    /// Nothing before then.
    pub(in crate::runtime) fn wait_until(&mut self, then: Instant) {
        self.not_before = then;
    }

    /// A delivery was written that is due after this long.
    pub(in crate::runtime) fn due_in(&mut self, now: Instant, delay: Duration) {
        self.due = self.due.min(now + delay);
    }

    /// What was due found no room.
    pub(in crate::runtime) fn due_again(&mut self, now: Instant) {
        self.due_in(now, DUE_AGAIN);
    }

    /// After an error: nothing is to be started before this.
    pub(in crate::runtime) fn not_before(&self) -> Instant {
        self.not_before
    }

    pub(in crate::runtime) fn may_start(&self, now: Instant) -> bool {
        now >= self.not_before
    }

    /// Whether all partitions are to be looked at, and why; if so, when next.
    pub(in crate::runtime) fn take_poll(&mut self, now: Instant) -> Option<Poll> {
        let probed = match self.probe {
            Some((at, gap)) if now >= at => {
                let gap = (gap * 2).min(LONGEST_PROBE);
                let since = self.published_at.map_or(gap, |at| now.duration_since(at));
                self.probe = (since < self.poll_interval).then(|| (now + gap, gap));
                if self.probes_due {
                    self.due = now;
                    self.probes_due = self.probe.is_some();
                }
                true
            }
            _ => false,
        };
        let polled = now >= self.poll;
        if polled {
            self.poll = now + self.poll_interval;
        }
        let prompted = probed || polled && std::mem::take(&mut self.prompted);
        match prompted {
            true => Some(Poll::Prompted),
            false => polled.then_some(Poll::Unprompted),
        }
    }

    pub(in crate::runtime) fn take_due(&mut self, now: Instant) -> bool {
        let due = now >= self.due;
        if due {
            self.due = now + self.poll_interval;
        }
        due
    }

    pub(in crate::runtime) fn take_late(&mut self, now: Instant) -> bool {
        let late = self.late.is_some_and(|at| now >= at);
        if late {
            self.late = None;
        }
        late
    }

    pub(in crate::runtime) fn take_sweep(&mut self, now: Instant) -> bool {
        let sweep = now >= self.sweep;
        if sweep {
            self.sweep = now + SWEEP_EVERY;
        }
        sweep
    }

    /// The database said in how many microseconds something is due; `brought` tells whether this
    /// fetch had something new of that kind.
    pub(in crate::runtime) fn next_due(
        &mut self,
        now: Instant,
        micros: Option<i64>,
        brought: bool,
    ) {
        let Some(micros) = micros else { return };
        let until = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        if until.is_zero() && !brought {
            // All of it is in memory, running: less and less often.
            self.due_in(now, self.due_gap);
            self.due_gap = (self.due_gap * 2).min(LONGEST_DUE_AGAIN);
            return;
        }
        self.due_gap = DUE_AGAIN;
        self.due_in(now, until);
    }

    /// A record may come late.
    pub(in crate::runtime) fn may_be_late(&mut self, now: Instant) {
        self.late.get_or_insert(now + LATE_EVERY);
    }

    /// When to look at this again if nothing else happens.
    pub(in crate::runtime) fn next(&self) -> Instant {
        let probe = self.probe.map(|(at, _)| at);
        [
            Some(self.poll),
            Some(self.due),
            Some(self.sweep),
            self.late,
            probe,
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(self.poll)
        .max(self.not_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn idle(now: Instant) -> Timers {
        let mut agenda = Timers::new(Duration::from_secs(5), now);
        assert!(agenda.take_sweep(now) && agenda.take_poll(now).is_some() && agenda.take_due(now));
        agenda
    }

    #[tokio::test(start_paused = true)]
    async fn idle_it_sleeps_until_the_next_poll() {
        let now = Instant::now();
        let mut agenda = idle(now);
        assert_eq!(agenda.next(), now + Duration::from_secs(5));
        assert!(agenda.take_poll(now).is_none() && !agenda.take_due(now) && !agenda.take_late(now));
        let then = now + Duration::from_secs(5);
        assert_eq!(agenda.take_poll(then), Some(Poll::Unprompted));
        agenda.records(then);
        assert_eq!(agenda.take_poll(then), Some(Poll::Prompted));
        agenda.published(then);
        assert_eq!(agenda.take_poll(then + FIRST_PROBE), Some(Poll::Prompted));
        let then = then + Duration::from_secs(20);
        agenda.take_poll(then);
        assert_eq!(
            agenda.take_poll(then + Duration::from_secs(5)),
            Some(Poll::Unprompted)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_publish_it_looks_less_and_less_often() {
        let start = Instant::now();
        let mut agenda = idle(start);
        agenda.published(start);
        let (mut now, mut gaps) = (start, Vec::new());
        while agenda.next() < start + 4000 * MS {
            gaps.push((agenda.next() - now).as_millis());
            now = agenda.next();
            assert!(agenda.take_poll(now).is_some());
        }
        assert_eq!(gaps[..10], [1, 2, 4, 8, 16, 32, 64, 128, 256, 500]);
        assert!(gaps[10..].iter().all(|gap| *gap == 500), "{gaps:?}");
        // In the end it is left to the poll.
        for _ in 0..4 {
            now = agenda.next();
            agenda.take_poll(now);
            agenda.take_due(now);
        }
        assert_eq!(agenda.probe, None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_publishes_all_the_time_does_not_put_off_the_look() {
        let start = Instant::now();
        let mut agenda = idle(start);
        for micros in (0..1000).step_by(100) {
            agenda.published(start + Duration::from_micros(micros));
        }
        assert_eq!(agenda.next(), start + FIRST_PROBE);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_scheduled_here_is_looked_for_so_that_its_time_is_known() {
        let now = Instant::now();
        let mut agenda = idle(now);
        agenda.published(now);
        assert!(agenda.take_poll(now + MS).is_some() && !agenda.take_due(now + MS));
        agenda.scheduled(now + MS);
        assert!(agenda.take_poll(now + 2 * MS).is_some() && agenda.take_due(now + 2 * MS));
        // Not committed yet: once more.
        assert!(agenda.take_poll(now + 4 * MS).is_some() && agenda.take_due(now + 4 * MS));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_overdue_and_known_is_no_busy_loop() {
        let now = Instant::now();
        let mut agenda = idle(now);
        agenda.next_due(now, Some(-5), false);
        assert_eq!(agenda.next(), now + DUE_AGAIN);
        agenda.next_due(now, Some(2_000), false);
        assert_eq!(agenda.next(), now + 2 * MS);
        agenda.next_due(now, Some(-5), true);
        assert_eq!(agenda.next(), now);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_delays_everything() {
        let now = Instant::now();
        let mut agenda = idle(now);
        agenda.all(now);
        agenda.wait_until(now + 100 * MS);
        assert!(!agenda.may_start(now));
        assert_eq!(agenda.next(), now + 100 * MS);
    }
}
