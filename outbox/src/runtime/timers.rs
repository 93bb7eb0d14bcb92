//! [`Timers`]: when to poll, sweep, look for due and for late records.                     (pure)

use std::time::Duration;

use tokio::time::Instant;

use super::{
    fetch::{FetchRequest, PollReason},
    signals::{Signal, Signals},
};

/// After this process published, the record may be committed at any moment: the first probe comes
/// after 1 ms, and the gap to the next doubles each time.
const FIRST_PROBE: Duration = Duration::from_millis(1);
/// The gap grows up to 500 ms. After one poll interval the probes end, and the poll finds the rest.
const LONGEST_PROBE: Duration = Duration::from_millis(500);
/// The time between two fetches that look for records of late writers.
const LATE_CHECK_EVERY: Duration = Duration::from_millis(400);
/// The time between two sweeps.
const SWEEP_EVERY: Duration = Duration::from_secs(120);
/// If there is no room for overdue records, or all of them are in memory, the next look for due
/// records comes after 50 ms. While all of them are in memory, that time doubles up to 800 ms.
const DUE_RETRY: Duration = Duration::from_millis(50);
const LONGEST_DUE_RETRY: Duration = Duration::from_millis(800);
/// After a signal of a peer the pending records are read first, and due ones 100 ms later.
const DUE_AFTER_PUBLISH: Duration = Duration::from_millis(100);

/// The times of the next fetches, by kind. The event loop writes and reads it.
#[derive(Debug)]
pub(crate) struct Timers {
    poll_interval: Duration,
    poll: Instant,
    /// Whether a signal says that the next poll will find something.
    is_signalled: bool,
    due: Instant,
    due_gap: Duration,
    late: Option<Instant>,
    sweep: Instant,
    /// The next probe, and the gap before it.
    probe: Option<(Instant, Duration)>,
    /// When this process published last.
    published_at: Option<Instant>,
    /// Whether the next probe also looks for due records, to learn when the next one is due.
    needs_due_probe: bool,
    /// After an error, nothing is read before this time.
    not_before: Instant,
}

impl Timers {
    pub(crate) fn new(poll_interval: Duration, now: Instant) -> Self {
        Self {
            poll_interval,
            poll: now,
            is_signalled: true,
            due: now,
            late: None,
            sweep: now,
            probe: None,
            published_at: None,
            due_gap: DUE_RETRY,
            needs_due_probe: false,
            not_before: now,
        }
    }

    pub(crate) fn on_signals(&mut self, raised: Signals, now: Instant) {
        if raised.has(Signal::Published) {
            self.published(now);
        }
        if raised.has(Signal::PublishedForLater) {
            self.published_for_later(now);
        }
        if raised.has(Signal::Requested) {
            self.requested(now);
        }
        if raised.has(Signal::PeerPublished) {
            self.peer_published(now);
        }
        if raised.has(Signal::Restored) {
            self.sweep_now(now);
        }
    }

    /// This process published; the transaction will end soon.
    fn published(&mut self, now: Instant) {
        // Never later than before: a process that publishes all the time must not delay its probe.
        let at = now + FIRST_PROBE;
        let at = self.probe.map_or(at, |(probe, _)| probe.min(at));
        self.probe = Some((at, FIRST_PROBE));
        self.published_at = Some(now);
    }

    /// This process published a record that is due later. Only a look for due records after the
    /// commit finds out when.
    fn published_for_later(&mut self, now: Instant) {
        self.published(now);
        self.needs_due_probe = true;
    }

    /// Reads pending and due records now.
    fn requested(&mut self, now: Instant) {
        self.poll = now;
        self.is_signalled = true;
        self.due = now;
    }

    /// Records were committed, and some of them may be due at a later time.
    fn peer_published(&mut self, now: Instant) {
        self.poll = now;
        self.is_signalled = true;
        self.due_in(now, DUE_AFTER_PUBLISH);
    }

    /// Reads everything again from id 0 now.
    pub(crate) fn sweep_now(&mut self, now: Instant) {
        self.requested(now);
        self.sweep = now;
    }

    /// Reads nothing before `then`.
    pub(crate) fn pause_until(&mut self, then: Instant) {
        self.not_before = then;
    }

    /// A delivery was written that is due after `delay`.
    pub(crate) fn due_in(&mut self, now: Instant, delay: Duration) {
        self.due = self.due.min(now + delay);
    }

    /// There is no room for due records. Looks again soon, because the retries of all handlers
    /// would otherwise wait for the next poll.
    pub(crate) fn due_found_no_room(&mut self, now: Instant) {
        self.due_in(now, DUE_RETRY);
    }

    pub(crate) fn not_before(&self) -> Instant {
        self.not_before
    }

    /// Takes the request for the next fetch.
    pub(crate) fn take_request(&mut self, now: Instant, clock_offset: i64) -> FetchRequest {
        let poll = self.take_poll(now);
        // A late record may be in any partition.
        let late = self.late.take_if(|at| now >= *at);
        FetchRequest {
            poll: late.map(|_| PollReason::Signalled).or(poll),
            due: self.take_due(now),
            sweep: take_if_due(&mut self.sweep, now, SWEEP_EVERY),
            clock_offset,
        }
    }

    fn take_poll(&mut self, now: Instant) -> Option<PollReason> {
        let probed = self.probe.take_if(|(at, _)| now >= *at);
        if let Some((_, gap)) = probed {
            let gap = (gap * 2).min(LONGEST_PROBE);
            let since = self.published_at.map_or(gap, |at| now.duration_since(at));
            self.probe = (since < self.poll_interval).then(|| (now + gap, gap));
            if self.needs_due_probe {
                self.due = now;
                self.needs_due_probe = self.probe.is_some();
            }
        }
        let has_polled = take_if_due(&mut self.poll, now, self.poll_interval);
        if probed.is_some() || has_polled && std::mem::take(&mut self.is_signalled) {
            Some(PollReason::Signalled)
        } else {
            has_polled.then_some(PollReason::Timer)
        }
    }

    fn take_due(&mut self, now: Instant) -> bool {
        take_if_due(&mut self.due, now, self.poll_interval)
    }

    /// The database said in how many microseconds a record is due. `has_new`: this fetch returned
    /// due records that were not in memory.
    pub(crate) fn due_reported(&mut self, now: Instant, micros: Option<i64>, has_new: bool) {
        let Some(micros) = micros else { return };
        let until = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        if until.is_zero() && !has_new {
            // All due records are in memory.
            self.due_in(now, self.due_gap);
            self.due_gap = (self.due_gap * 2).min(LONGEST_DUE_RETRY);
            return;
        }
        self.due_gap = DUE_RETRY;
        self.due_in(now, until);
    }

    /// A transaction that is still open may commit a record below what was read.
    pub(crate) fn expect_late(&mut self, now: Instant) {
        self.late.get_or_insert(now + LATE_CHECK_EVERY);
    }

    pub(crate) fn next_wake(&self) -> Instant {
        let probe = self.probe.map(|(at, _)| at);
        let always = self.poll.min(self.due).min(self.sweep);
        let wakes = self.late.into_iter().chain(probe);
        wakes.fold(always, Instant::min).max(self.not_before)
    }
}

/// Whether the time has come. If so, the next time is `every` from now.
fn take_if_due(at: &mut Instant, now: Instant, every: Duration) -> bool {
    let has_come = now >= *at;
    if has_come {
        *at = now + every;
    }
    has_come
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn idle(now: Instant) -> Timers {
        let mut timers = Timers::new(Duration::from_secs(5), now);
        let request = timers.take_request(now, 0);
        assert!(request.sweep && request.poll.is_some() && request.due);
        timers
    }

    #[tokio::test(start_paused = true)]
    async fn without_signals_it_waits_for_the_next_poll() {
        let now = Instant::now();
        let mut timers = idle(now);
        assert_eq!(timers.next_wake(), now + Duration::from_secs(5));
        assert_eq!(timers.take_request(now, 0), FetchRequest::default());
        let then = now + Duration::from_secs(5);
        assert_eq!(timers.take_poll(then), Some(PollReason::Timer));
        timers.peer_published(then);
        assert_eq!(timers.take_poll(then), Some(PollReason::Signalled));
        timers.published(then);
        assert_eq!(
            timers.take_poll(then + FIRST_PROBE),
            Some(PollReason::Signalled)
        );
        let then = then + Duration::from_secs(20);
        timers.take_poll(then);
        assert_eq!(
            timers.take_poll(then + Duration::from_secs(5)),
            Some(PollReason::Timer)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_publish_the_gap_between_probes_doubles() {
        let start = Instant::now();
        let mut timers = idle(start);
        timers.published(start);
        let (mut now, mut gaps) = (start, Vec::new());
        while timers.next_wake() < start + 4000 * MS {
            gaps.push((timers.next_wake() - now).as_millis());
            now = timers.next_wake();
            assert!(timers.take_poll(now).is_some());
        }
        assert_eq!(gaps[..10], [1, 2, 4, 8, 16, 32, 64, 128, 256, 500]);
        assert!(gaps[10..].iter().all(|gap| *gap == 500), "{gaps:?}");
        // The probes end after one poll interval.
        for _ in 0..4 {
            now = timers.next_wake();
            timers.take_poll(now);
            timers.take_due(now);
        }
        assert_eq!(timers.probe, None);
    }

    #[tokio::test(start_paused = true)]
    async fn constant_publishing_does_not_delay_the_probe() {
        let start = Instant::now();
        let mut timers = idle(start);
        for micros in (0..1000).step_by(100) {
            timers.published(start + Duration::from_micros(micros));
        }
        assert_eq!(timers.next_wake(), start + FIRST_PROBE);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_delayed_publish_probes_look_for_due_records_too() {
        let now = Instant::now();
        let mut timers = idle(now);
        timers.published(now);
        assert!(timers.take_poll(now + MS).is_some() && !timers.take_due(now + MS));
        timers.published_for_later(now + MS);
        assert!(timers.take_poll(now + 2 * MS).is_some() && timers.take_due(now + 2 * MS));
        // The transaction may not have committed yet, so the next probe looks again.
        assert!(timers.take_poll(now + 4 * MS).is_some() && timers.take_due(now + 4 * MS));
    }

    #[tokio::test(start_paused = true)]
    async fn overdue_records_in_memory_cause_no_busy_loop() {
        let now = Instant::now();
        let mut timers = idle(now);
        timers.due_reported(now, Some(-5), false);
        assert_eq!(timers.next_wake(), now + DUE_RETRY);
        timers.due_reported(now, Some(2_000), false);
        assert_eq!(timers.next_wake(), now + 2 * MS);
        timers.due_reported(now, Some(-5), true);
        assert_eq!(timers.next_wake(), now);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_delays_everything() {
        let now = Instant::now();
        let mut timers = idle(now);
        timers.requested(now);
        timers.pause_until(now + 100 * MS);
        assert_eq!(timers.next_wake(), now + 100 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_for_late_records_polls_all_partitions() {
        let now = Instant::now();
        let mut timers = idle(now);
        timers.expect_late(now);
        let request = timers.take_request(now + LATE_CHECK_EVERY, 7);
        let expected = FetchRequest {
            poll: Some(PollReason::Signalled),
            clock_offset: 7,
            ..FetchRequest::default()
        };
        assert_eq!(request, expected);
    }
}
