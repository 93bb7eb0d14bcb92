//! Invented histories: each rule finds its violation, and a correct run passes.

use super::*;
use crate::history::Invocation;

const SECOND: Nanos = 1_000_000_000;

/// A history that a test writes; times are in milliseconds.
#[derive(Default)]
struct Invented(Vec<Fact>);

impl Invented {
    /// Events 1 to `count` of the key `k`, each in its own transaction, acknowledged at 0.
    fn of(count: i64, handler: Handler) -> Self {
        let mut history = Self::default();
        for event in 1..=count {
            history.commit(event, handler, None);
        }
        history
    }

    fn commit(&mut self, event: i64, handler: Handler, dedup: Option<&str>) {
        self.commit_at(0, event, handler, dedup);
    }

    fn commit_at(&mut self, at: i64, event: i64, handler: Handler, dedup: Option<&str>) {
        self.0.push(Fact::Sent(Sent {
            event,
            tx: event,
            key: "k".to_owned(),
            number: event,
            handler,
            dedup: dedup.map(str::to_owned),
        }));
        self.acknowledge(at, event);
    }

    fn acknowledge(&mut self, at: i64, tx: i64) {
        let (at, events) = (at * SECOND / 1000, 1);
        self.0.push(Fact::Acknowledged { at, tx, events });
    }

    fn invocation(at: i64, pid: u32, event: i64, handler: Handler) -> Invocation {
        Invocation {
            at: at * SECOND / 1000,
            worker: format!("w{pid}"),
            pid,
            handler,
            key: "k".to_owned(),
            number: event,
            event,
            attempt: 1,
        }
    }

    fn start(&mut self, at: i64, pid: u32, event: i64) {
        let invocation = Self::invocation(at, pid, event, Handler::Plain);
        self.0.push(Fact::Start(invocation));
    }

    fn end(&mut self, at: i64, pid: u32, event: i64, end: End) {
        let invocation = Self::invocation(at, pid, event, Handler::Plain);
        self.0.push(Fact::End { invocation, end });
    }

    /// A start, and a success 10 ms later.
    fn deliver(&mut self, at: i64, pid: u32, event: i64) {
        self.start(at, pid, event);
        self.end(at + 10, pid, event, End::Ok);
    }

    fn effect(&mut self, id: i64, event: i64) {
        let key = "k".to_owned();
        self.0.push(Fact::Effect { id, event, key });
    }

    fn fault(&mut self, kind: &str, pid: u32, from: i64, until: i64) {
        self.0.push(Fact::Fault(Fault {
            kind: kind.to_owned(),
            pid: Some(pid),
            from: from * SECOND / 1000,
            until: until * SECOND / 1000,
        }));
    }

    /// The numbers of lost, reordered, stale and missing events and of wrong dedup keys.
    fn counts(&self) -> [usize; 5] {
        let verdict = judge(&self.0);
        let Verdict {
            lost,
            reordered,
            stale,
            missing,
            wrong_dedup,
            ..
        } = &verdict;
        let counts =
            [lost, reordered, stale, missing, wrong_dedup].map(|violations| violations.count);
        assert_eq!(verdict.is_clean(), counts == [0; 5]);
        counts
    }
}

#[test]
fn a_run_with_a_kill_a_freeze_and_a_repeated_event_is_correct() {
    let mut history = Invented::of(6, Handler::Plain);
    history.deliver(5_000, 1, 1);
    history.deliver(5_020, 1, 2);
    // Process 1 is killed while it handles event 3. It had not written the result of event 2.
    history.start(5_040, 1, 3);
    history.fault("kill", 1, 5_045, 5_046);
    history.deliver(7_000, 2, 2);
    history.deliver(7_020, 2, 3);
    // Process 2 is frozen while it handles event 4, and resumed after process 3 has taken over.
    history.start(7_040, 2, 4);
    history.deliver(13_000, 3, 4);
    history.deliver(13_020, 3, 5);
    history.fault("freeze", 2, 7_045, 14_000);
    history.end(14_001, 2, 4, End::Ok);
    history.start(20_000, 3, 6);
    history.end(20_010, 3, 6, End::Failed);
    history.deliver(20_030, 3, 6);
    assert_eq!(history.counts(), [0; 5]);
    let verdict = judge(&history.0);
    assert_eq!((verdict.committed, verdict.delivered), (6, 6));
    // Events 2 and 4.
    assert_eq!(verdict.duplicates, 2);
    // From the end of event 2 at 5,030 ms to its repetition at 7,000 ms.
    assert_eq!(verdict.window, 1_970 * SECOND / 1000);
    assert_eq!(verdict.takeovers, [1_975 * SECOND / 1000]);
    assert_eq!(
        verdict.to_string(),
        "committed 6, delivered 6, lost 0, reordered 0, stale 0, \
        duplicates 2 (largest window 1.9 s), takeover 1975/1975 ms"
    );
}

#[test]
fn an_event_without_a_success_is_lost() {
    let mut history = Invented::of(2, Handler::Plain);
    history.deliver(0, 1, 1);
    history.start(20, 1, 2);
    history.end(30, 1, 2, End::Failed);
    assert_eq!(history.counts(), [1, 0, 0, 0, 0]);
}

#[test]
fn an_event_without_its_row_is_lost() {
    let mut history = Invented::of(2, Handler::Tx);
    history.effect(1, 1);
    let invocation = Invented::invocation(0, 1, 2, Handler::Tx);
    history.0.push(Fact::Start(invocation.clone()));
    let end = End::Ok;
    history.0.push(Fact::End { invocation, end });
    // Event 2 also started before event 1 had an end in the history.
    assert_eq!(history.counts(), [1, 1, 0, 0, 0]);
}

#[test]
fn an_event_that_starts_before_an_earlier_one_is_done_is_reordered() {
    let mut history = Invented::of(2, Handler::Plain);
    history.start(0, 1, 1);
    history.end(10, 1, 1, End::Failed);
    history.deliver(20, 1, 2);
    history.deliver(40, 1, 1);
    assert_eq!(history.counts(), [0, 1, 0, 0, 0]);
}

#[test]
fn numbers_may_have_gaps_and_handlers_do_not_wait_for_each_other() {
    let mut history = Invented::default();
    history.commit(3, Handler::Plain, None);
    history.commit(5, Handler::Tx, None);
    history.commit(9, Handler::Plain, None);
    history.deliver(0, 1, 3);
    history.deliver(20, 1, 9);
    history.effect(1, 5);
    assert_eq!(history.counts(), [0; 5]);
}

#[test]
fn rows_in_the_wrong_order_are_reordered() {
    let mut history = Invented::of(2, Handler::Tx);
    history.effect(7, 2);
    history.effect(8, 1);
    assert_eq!(history.counts(), [0, 1, 0, 0, 0]);
}

#[test]
fn a_key_that_two_processes_handle_at_once_is_stale() {
    let mut history = Invented::of(1, Handler::Plain);
    history.start(5_000, 1, 1);
    history.start(5_500, 2, 1);
    history.end(5_600, 1, 1, End::Ok);
    history.end(5_700, 2, 1, End::Ok);
    assert_eq!(history.counts(), [0, 0, 1, 0, 0]);
    // A fault that ended long before, or of another process, is no excuse.
    history.fault("cut", 1, 1_000, 3_900);
    history.fault("cut", 2, 5_100, 5_200);
    assert_eq!(history.counts(), [0, 0, 1, 0, 0]);
    history.fault("freeze", 1, 5_100, 5_600);
    assert_eq!(history.counts(), [0; 5]);
}

#[test]
fn an_event_that_a_healthy_process_completed_must_not_start_again() {
    let mut history = Invented::of(1, Handler::Plain);
    history.deliver(5_000, 1, 1);
    history.deliver(19_000, 2, 1);
    assert_eq!(history.counts(), [0, 0, 1, 0, 0]);
    history.fault("kill", 1, 8_100, 8_101);
    assert_eq!(history.counts(), [0, 0, 1, 0, 0]);
    history.fault("cut", 1, 5_500, 5_600);
    assert_eq!(history.counts(), [0; 5]);
}

#[test]
fn a_second_row_of_an_event_is_stale_with_or_without_faults() {
    let mut history = Invented::of(1, Handler::Tx);
    history.effect(1, 1);
    history.effect(2, 1);
    history.fault("freeze", 1, 0, 60_000);
    assert_eq!(history.counts(), [0, 0, 1, 0, 0]);
}

#[test]
fn an_event_that_was_never_committed_must_not_be_delivered() {
    let mut history = Invented::of(1, Handler::Plain);
    history.deliver(0, 1, 1);
    history.deliver(20, 1, 2);
    assert_eq!(history.counts(), [0, 0, 1, 0, 0]);
    history.effect(1, 3);
    assert_eq!(history.counts(), [0, 0, 2, 0, 0]);
}

#[test]
fn an_acknowledged_commit_without_its_rows_is_missing() {
    let mut history = Invented::of(1, Handler::Plain);
    history.deliver(0, 1, 1);
    history.acknowledge(0, 2);
    assert_eq!(history.counts(), [0, 0, 0, 1, 0]);
}

#[test]
fn a_dedup_key_is_published_once_and_refused_only_after_that() {
    let mut history = Invented::default();
    history.commit(1, Handler::Plain, Some("a"));
    history.deliver(0, 1, 1);
    let dedup = "a".to_owned();
    history.0.push(Fact::Duplicate { at: 0, dedup });
    assert_eq!(history.counts(), [0; 5]);
    history.commit(2, Handler::Plain, Some("a"));
    history.deliver(20, 1, 2);
    assert_eq!(history.counts(), [0, 0, 0, 0, 1]);
    let dedup = "b".to_owned();
    history.0.push(Fact::Duplicate { at: 0, dedup });
    assert_eq!(history.counts(), [0, 0, 0, 0, 2]);
}

#[test]
fn a_takeover_is_measured_only_for_a_waiting_event() {
    let mut history = Invented::of(2, Handler::Plain);
    history.deliver(5_000, 1, 1);
    history.fault("kill", 1, 5_500, 5_501);
    history.deliver(6_500, 2, 2);
    assert_eq!(judge(&history.0).takeovers, [SECOND]);
    // A start by the victim itself, before it dies, does not count.
    let mut dying = Invented::of(3, Handler::Plain);
    dying.deliver(5_000, 1, 1);
    dying.fault("kill", 1, 5_500, 5_600);
    dying.start(5_550, 1, 2);
    dying.deliver(6_500, 2, 2);
    assert_eq!(judge(&dying.0).takeovers, [SECOND]);
    // All events were completed before the kill, and the next one was committed later.
    let mut idle = Invented::of(1, Handler::Plain);
    idle.deliver(5_000, 1, 1);
    idle.fault("kill", 1, 5_500, 5_501);
    idle.commit_at(9_000, 2, Handler::Plain, None);
    idle.deliver(9_010, 2, 2);
    assert!(judge(&idle.0).takeovers.is_empty());
    // The victim finished the waiting event before it died; the later event did not wait.
    let mut last = Invented::of(2, Handler::Plain);
    last.deliver(5_000, 1, 1);
    last.fault("kill", 1, 5_500, 5_600);
    last.deliver(5_550, 1, 2);
    last.commit_at(9_000, 3, Handler::Plain, None);
    last.deliver(9_010, 2, 3);
    assert!(judge(&last.0).takeovers.is_empty());
    // The victim had not served the key in the second before the kill.
    let mut elsewhere = Invented::of(2, Handler::Plain);
    elsewhere.deliver(5_000, 1, 1);
    elsewhere.fault("kill", 1, 7_500, 7_501);
    elsewhere.deliver(8_000, 2, 2);
    assert!(judge(&elsewhere.0).takeovers.is_empty());
}
