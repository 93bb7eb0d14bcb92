//! Forged histories: each rule catches what it is for, and a correct run passes.

use super::*;
use crate::history::Visit;

const SECOND: Nanos = 1_000_000_000;

/// A history in the making; times are in milliseconds.
#[derive(Default)]
struct Story(Vec<Fact>);

impl Story {
    /// Events 1 to `count` of the key `k`, each of a transaction of its own, acknowledged at 0.
    fn of(count: i64, handler: Handler) -> Self {
        let mut story = Self::default();
        for event in 1..=count {
            story.commit(event, handler, None);
        }
        story
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

    fn visit(at: i64, pid: u32, event: i64, handler: Handler) -> Visit {
        Visit {
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
        let visit = Self::visit(at, pid, event, Handler::Plain);
        self.0.push(Fact::Start(visit));
    }

    fn end(&mut self, at: i64, pid: u32, event: i64, end: End) {
        let visit = Self::visit(at, pid, event, Handler::Plain);
        self.0.push(Fact::End { visit, end });
    }

    /// Ten milliseconds of work.
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

    /// How many are lost, reordered, stale, missing and wrong about dedup keys.
    fn counts(&self) -> [usize; 5] {
        let verdict = judge(&self.0);
        let Verdict {
            lost,
            reordered,
            stale,
            missing,
            twice,
            ..
        } = &verdict;
        let counts = [lost, reordered, stale, missing, twice].map(|offences| offences.count);
        assert_eq!(verdict.is_clean(), counts == [0; 5]);
        counts
    }
}

#[test]
fn a_run_with_a_kill_a_freeze_and_a_rewind_is_correct() {
    let mut story = Story::of(6, Handler::Plain);
    story.deliver(5_000, 1, 1);
    story.deliver(5_020, 1, 2);
    // Killed while it works on 3; what it did last was not written.
    story.start(5_040, 1, 3);
    story.fault("kill", 1, 5_045, 5_046);
    story.deliver(7_000, 2, 2);
    story.deliver(7_020, 2, 3);
    // Frozen in the middle of 4, and resumed when somebody else has gone on.
    story.start(7_040, 2, 4);
    story.deliver(13_000, 3, 4);
    story.deliver(13_020, 3, 5);
    story.fault("freeze", 2, 7_045, 14_000);
    story.end(14_001, 2, 4, End::Ok);
    story.start(20_000, 3, 6);
    story.end(20_010, 3, 6, End::Failed);
    story.deliver(20_030, 3, 6);
    assert_eq!(story.counts(), [0; 5]);
    let verdict = judge(&story.0);
    assert_eq!((verdict.committed, verdict.delivered), (6, 6));
    // 2 and 4.
    assert_eq!(verdict.duplicates, 2);
    // From the end of 2 at 5,030 to its repetition at 7,000.
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
    let mut story = Story::of(2, Handler::Plain);
    story.deliver(0, 1, 1);
    story.start(20, 1, 2);
    story.end(30, 1, 2, End::Failed);
    assert_eq!(story.counts(), [1, 0, 0, 0, 0]);
}

#[test]
fn an_event_without_its_row_is_lost() {
    let mut story = Story::of(2, Handler::Tx);
    story.effect(1, 1);
    let visit = Story::visit(0, 1, 2, Handler::Tx);
    story.0.push(Fact::Start(visit.clone()));
    let end = End::Ok;
    story.0.push(Fact::End { visit, end });
    // 2 also started before anyone had said that 1 is done.
    assert_eq!(story.counts(), [1, 1, 0, 0, 0]);
}

#[test]
fn an_event_that_starts_before_an_earlier_one_is_done_is_reordered() {
    let mut story = Story::of(2, Handler::Plain);
    story.start(0, 1, 1);
    story.end(10, 1, 1, End::Failed);
    story.deliver(20, 1, 2);
    story.deliver(40, 1, 1);
    assert_eq!(story.counts(), [0, 1, 0, 0, 0]);
}

#[test]
fn numbers_may_have_gaps_and_handlers_do_not_wait_for_each_other() {
    let mut story = Story::default();
    story.commit(3, Handler::Plain, None);
    story.commit(5, Handler::Tx, None);
    story.commit(9, Handler::Plain, None);
    story.deliver(0, 1, 3);
    story.deliver(20, 1, 9);
    story.effect(1, 5);
    assert_eq!(story.counts(), [0; 5]);
}

#[test]
fn rows_in_the_wrong_order_are_reordered() {
    let mut story = Story::of(2, Handler::Tx);
    story.effect(7, 2);
    story.effect(8, 1);
    assert_eq!(story.counts(), [0, 1, 0, 0, 0]);
}

#[test]
fn a_key_that_two_work_on_at_once_is_stale() {
    let mut story = Story::of(1, Handler::Plain);
    story.start(5_000, 1, 1);
    story.start(5_500, 2, 1);
    story.end(5_600, 1, 1, End::Ok);
    story.end(5_700, 2, 1, End::Ok);
    assert_eq!(story.counts(), [0, 0, 1, 0, 0]);
    // A fault that was over long before, or hits somebody else, is no excuse.
    story.fault("cut", 1, 1_000, 3_900);
    story.fault("cut", 2, 5_100, 5_200);
    assert_eq!(story.counts(), [0, 0, 1, 0, 0]);
    story.fault("freeze", 1, 5_100, 5_600);
    assert_eq!(story.counts(), [0; 5]);
}

#[test]
fn what_a_sound_process_has_completed_is_not_started_again() {
    let mut story = Story::of(1, Handler::Plain);
    story.deliver(5_000, 1, 1);
    story.deliver(19_000, 2, 1);
    assert_eq!(story.counts(), [0, 0, 1, 0, 0]);
    story.fault("kill", 1, 8_100, 8_101);
    assert_eq!(story.counts(), [0, 0, 1, 0, 0]);
    story.fault("cut", 1, 5_500, 5_600);
    assert_eq!(story.counts(), [0; 5]);
}

#[test]
fn a_second_row_of_an_event_is_stale_whatever_happened() {
    let mut story = Story::of(1, Handler::Tx);
    story.effect(1, 1);
    story.effect(2, 1);
    story.fault("freeze", 1, 0, 60_000);
    assert_eq!(story.counts(), [0, 0, 1, 0, 0]);
}

#[test]
fn what_was_never_committed_is_never_delivered() {
    let mut story = Story::of(1, Handler::Plain);
    story.deliver(0, 1, 1);
    story.deliver(20, 1, 2);
    assert_eq!(story.counts(), [0, 0, 1, 0, 0]);
    story.effect(1, 3);
    assert_eq!(story.counts(), [0, 0, 2, 0, 0]);
}

#[test]
fn an_acknowledged_commit_that_is_not_there_is_missing() {
    let mut story = Story::of(1, Handler::Plain);
    story.deliver(0, 1, 1);
    story.acknowledge(0, 2);
    assert_eq!(story.counts(), [0, 0, 0, 1, 0]);
}

#[test]
fn a_dedup_key_is_published_once_and_known_only_then() {
    let mut story = Story::default();
    story.commit(1, Handler::Plain, Some("a"));
    story.deliver(0, 1, 1);
    let dedup = "a".to_owned();
    story.0.push(Fact::Duplicate { at: 0, dedup });
    assert_eq!(story.counts(), [0; 5]);
    story.commit(2, Handler::Plain, Some("a"));
    story.deliver(20, 1, 2);
    assert_eq!(story.counts(), [0, 0, 0, 0, 1]);
    let dedup = "b".to_owned();
    story.0.push(Fact::Duplicate { at: 0, dedup });
    assert_eq!(story.counts(), [0, 0, 0, 0, 2]);
}

#[test]
fn a_takeover_is_measured_where_something_waited() {
    let mut story = Story::of(2, Handler::Plain);
    story.deliver(5_000, 1, 1);
    story.fault("kill", 1, 5_500, 5_501);
    story.deliver(6_500, 2, 2);
    assert_eq!(judge(&story.0).takeovers, [SECOND]);
    // Not by the victim itself, in its last moments.
    let mut dying = Story::of(3, Handler::Plain);
    dying.deliver(5_000, 1, 1);
    dying.fault("kill", 1, 5_500, 5_600);
    dying.start(5_550, 1, 2);
    dying.deliver(6_500, 2, 2);
    assert_eq!(judge(&dying.0).takeovers, [SECOND]);
    // Everything was done before the kill, and the next event was committed later.
    let mut idle = Story::of(1, Handler::Plain);
    idle.deliver(5_000, 1, 1);
    idle.fault("kill", 1, 5_500, 5_501);
    idle.commit_at(9_000, 2, Handler::Plain, None);
    idle.deliver(9_010, 2, 2);
    assert!(judge(&idle.0).takeovers.is_empty());
    // The victim finished what waited in its last moments; what comes later did not wait.
    let mut last = Story::of(2, Handler::Plain);
    last.deliver(5_000, 1, 1);
    last.fault("kill", 1, 5_500, 5_600);
    last.deliver(5_550, 1, 2);
    last.commit_at(9_000, 3, Handler::Plain, None);
    last.deliver(9_010, 2, 3);
    assert!(judge(&last.0).takeovers.is_empty());
    // The victim had not served the key for a while.
    let mut elsewhere = Story::of(2, Handler::Plain);
    elsewhere.deliver(5_000, 1, 1);
    elsewhere.fault("kill", 1, 7_500, 7_501);
    elsewhere.deliver(8_000, 2, 2);
    assert!(judge(&elsewhere.0).takeovers.is_empty());
}
