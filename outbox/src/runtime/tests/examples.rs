//! One transition each, on lanes alone.

use crate::runtime::tests::{
    HANDLERS, Setup, attempt, record,
    world::{End, attempt_end},
};
use crate::{
    record::DeliveryStatus,
    registry::HandlerIx,
    runtime::lane::{Lanes, OutgoingBatch, Target, Work},
    store::{FetchedDelivery, FetchedRecord, LaneName},
};

/// Lanes, and what they started.
struct Bench {
    lanes: Lanes,
    running: Vec<Work>,
}

const A: HandlerIx = HandlerIx::for_tests(0);
const B: HandlerIx = HandlerIx::for_tests(1);
const C: HandlerIx = HandlerIx::for_tests(2);
const KEY: &str = "k";

fn lane(handler: HandlerIx) -> LaneName {
    LaneName {
        part: 0,
        key: KEY.to_owned(),
        handler: HANDLERS[handler.place()].to_owned(),
    }
}

/// A row of the lane of `a`.
fn row(id: i64, number: u32, waiting: bool, blocking: bool, followed: bool) -> FetchedDelivery {
    FetchedDelivery {
        handler: HANDLERS[0].to_owned(),
        waiting,
        blocking,
        followed,
        attempt: attempt(number),
        fetched: fetched(id, KEY),
    }
}

fn fetched(id: i64, key: &str) -> FetchedRecord {
    let record = record(id, key, "");
    FetchedRecord { part: 0, record }
}

impl Bench {
    fn new(stop_on_failure: bool) -> Self {
        let setup = Setup {
            stop_on_failure,
            transactional: false,
            max_records: 8,
            max_burst: 1,
        };
        let (lanes, running) = (Lanes::new(setup.settings()), Vec::new());
        Self { lanes, running }
    }

    fn record(&mut self, id: i64, handlers: &[HandlerIx]) -> bool {
        self.record_of(KEY, id, handlers)
    }

    fn record_of(&mut self, key: &str, id: i64, handlers: &[HandlerIx]) -> bool {
        let route = |&handler| Target {
            handler,
            is_blocked: false,
        };
        let route: Vec<Target> = handlers.iter().map(route).collect();
        self.lanes.admit_record(fetched(id, key), &route)
    }

    /// What runs.
    fn runs(&mut self) -> Vec<(i64, HandlerIx)> {
        let bursts = self.lanes.take_bursts().into_iter();
        self.running.extend(bursts.map(|burst| burst.first));
        let runs = self.running.iter();
        runs.map(|work| (work.record.id, work.handler)).collect()
    }

    fn ends(&mut self, id: i64, handler: HandlerIx, end: End) {
        self.runs();
        let is_it = |work: &Work| (work.record.id, work.handler) == (id, handler);
        let at = self.running.iter().position(is_it).unwrap();
        let work = self.running.remove(at);
        self.lanes.on_finished(&work, attempt_end(&work, end));
    }

    fn batch(&mut self) -> OutgoingBatch {
        self.lanes.take_batch().unwrap()
    }

    /// The rows that a batch is to write: splits, then changes.
    fn rows(unwritten: &OutgoingBatch) -> Vec<(i64, &'static str, DeliveryStatus)> {
        let batch = unwritten.batch();
        let rows = batch.new_deliveries.iter().chain(&batch.changed_deliveries);
        rows.map(|row| (row.record_id, row.handler, row.status))
            .collect()
    }

    fn write(&mut self) {
        let unwritten = self.batch();
        self.lanes.on_written(unwritten);
    }

    fn is_empty(&self) {
        assert_eq!(self.lanes.leftovers(), None);
    }
}

#[test]
fn a_record_is_done_when_all_its_handlers_are() {
    let mut bench = Bench::new(true);
    assert!(bench.record(1, &[A, B]));
    assert_eq!(bench.runs(), [(1, A), (1, B)]);
    bench.ends(1, B, End::Completed);
    assert!(!bench.lanes.has_batch());
    bench.ends(1, A, End::Completed);
    let batch = bench.batch();
    assert_eq!(batch.batch().completed, [1]);
    assert!(!bench.record(1, &[A, B]), "it is known until it is written");
    bench.lanes.on_written(batch);
    bench.is_empty();
}

#[test]
fn what_nothing_handles_is_put_aside() {
    let mut bench = Bench::new(true);
    assert!(bench.record(1, &[]));
    let batch = bench.batch();
    assert_eq!(batch.batch().unhandled, [1]);
    bench.lanes.on_written(batch);
    bench.is_empty();
}

#[test]
fn a_lane_runs_one_record_after_the_other_and_others_beside_it() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A]);
    bench.record(2, &[A]);
    bench.record_of("other", 3, &[A]);
    assert_eq!(bench.runs(), [(1, A), (3, A)]);
    bench.ends(1, A, End::Completed);
    assert_eq!(bench.runs(), [(3, A), (2, A)]);
}

#[test]
fn a_handler_has_so_many_slots() {
    let mut bench = Bench::new(true);
    bench.record_of("x", 1, &[B]);
    bench.record_of("y", 2, &[B]);
    assert_eq!(bench.runs(), [(1, B)]);
    bench.ends(1, B, End::Completed);
    assert_eq!(bench.runs(), [(2, B)]);
}

#[test]
fn a_retry_gives_rows_to_all_that_stand_in_its_lanes_in_order() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A, C]);
    bench.record(2, &[A, C]);
    bench.ends(1, C, End::Completed);
    bench.ends(1, A, End::RetryIn(5));
    let batch = bench.batch();
    assert_eq!(batch.batch().split_records, [1, 2]);
    let rows = [
        (1, "a", DeliveryStatus::Retrying),
        (2, "a", DeliveryStatus::Waiting),
        (2, "c", DeliveryStatus::Waiting),
    ];
    assert_eq!(Bench::rows(&batch), rows);
    let retry = &batch.batch().new_deliveries[0];
    assert_eq!((retry.attempt, retry.due_in), (2, Some(5)));
    assert!(retry.blocking);
    assert_eq!(bench.runs(), [(2, C)], "the other lane goes on");
    bench.lanes.on_written(batch);
    bench.ends(2, C, End::Completed);
    bench.write();
    bench.is_empty();
}

#[test]
fn a_failure_that_is_skipped_lets_the_lane_go_on() {
    let mut bench = Bench::new(true);
    bench.record(1, &[B]);
    bench.record(2, &[B]);
    bench.ends(1, B, End::Failed);
    assert_eq!(bench.runs(), [(2, B)]);
    let batch = bench.batch();
    assert_eq!(
        batch.batch().new_deliveries[0].status,
        DeliveryStatus::Failed
    );
    assert!(!batch.batch().new_deliveries[0].blocking);
}

#[test]
fn without_order_a_retry_is_detached() {
    let mut bench = Bench::new(false);
    bench.record(1, &[A]);
    bench.record(2, &[A]);
    bench.ends(1, A, End::RetryIn(5));
    assert_eq!(bench.runs(), [(2, A)]);
    bench.write();
    bench.lanes.admit_due(A, row(1, 2, false, false, true));
    assert_eq!(bench.runs(), [(2, A), (1, A)]);
}

#[test]
fn a_due_delivery_runs_and_then_what_waits_behind_it() {
    let mut bench = Bench::new(true);
    assert!(bench.lanes.admit_due(A, row(1, 2, false, true, true)));
    assert_eq!(bench.runs(), [(1, A)]);
    bench.ends(1, A, End::Completed);
    assert!(!bench.lanes.has_lanes_to_load(), "not before it is written");
    bench.write();
    assert_eq!(bench.lanes.fetch_started(9), [lane(A)]);
    let rows = vec![row(2, 1, true, true, true), row(3, 1, true, true, false)];
    bench.lanes.admit_loaded(&lane(A), A, rows);
    bench.lanes.fetch_ended();
    assert_eq!(bench.runs(), [(2, A)]);
    bench.record(4, &[A]);
    bench.ends(2, A, End::Completed);
    bench.ends(3, A, End::Completed);
    assert_eq!(bench.runs(), [(4, A)], "that was all");
}

#[test]
fn what_is_parked_while_its_lane_is_read_makes_it_read_again() {
    let mut bench = Bench::new(true);
    bench.lanes.admit_runnable(&lane(A), A);
    assert_eq!(bench.lanes.fetch_started(9), [lane(A)]);
    bench.record(2, &[A]);
    bench.lanes.admit_loaded(&lane(A), A, Vec::new());
    bench.lanes.fetch_ended();
    assert!(bench.runs().is_empty() && !bench.lanes.has_lanes_to_load());
    bench.write();
    assert_eq!(bench.lanes.fetch_started(9), [lane(A)]);
}

#[test]
fn what_a_fetch_may_have_seen_before_it_was_written_is_known_until_it_arrives() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A]);
    bench.lanes.fetch_started(9);
    bench.ends(1, A, End::Completed);
    bench.write();
    assert!(!bench.record(1, &[A]));
    bench.lanes.fetch_ended();
    bench.is_empty();
}

#[test]
fn lanes_that_wait_for_a_slot_can_leave_memory_and_are_asked_for_again() {
    let mut bench = Bench::new(true);
    bench.record_of("x", 1, &[B]);
    bench.record_of("y", 2, &[B]);
    assert!(bench.lanes.evict(1));
    let batch = bench.batch();
    assert_eq!(Bench::rows(&batch), [(2, "b", DeliveryStatus::Waiting)]);
    assert!(
        bench.lanes.handlers_to_refill().is_empty(),
        "nothing to be found yet"
    );
    bench.lanes.on_written(batch);
    assert_eq!(bench.lanes.handlers_to_refill(), [B]);
    assert_eq!(bench.lanes.in_memory(), 1);
}

/// Found by the laws: the read of the lane saw the delivery as not to run now, and closed the lane.
#[test]
fn a_due_delivery_that_is_read_twice_in_a_fetch_leaves_its_lane_open() {
    let mut bench = Bench::new(true);
    bench.lanes.admit_runnable(&lane(A), A);
    bench.lanes.fetch_started(9);
    let due = || row(1, 2, false, true, true);
    assert!(bench.lanes.admit_due(A, due()));
    let rows = vec![due(), row(2, 1, true, true, false)];
    bench.lanes.admit_loaded(&lane(A), A, rows);
    bench.lanes.fetch_ended();
    assert_eq!(bench.runs(), [(1, A)]);
    bench.ends(1, A, End::Completed);
    bench.write();
    assert_eq!(bench.lanes.fetch_started(9), [lane(A)]);
}

#[test]
fn a_batch_of_before_a_lost_lease_says_nothing_about_what_was_read_after() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A]);
    bench.ends(1, A, End::Completed);
    let old = bench.batch();
    bench.lanes.drop_partitions(&[0], &[]);
    assert!(bench.record(1, &[A]));
    bench.lanes.on_written(old);
    assert!(!bench.record(1, &[A]));
}

#[test]
fn the_same_for_deliveries() {
    let mut bench = Bench::new(true);
    let due = || row(1, 2, false, true, false);
    assert!(bench.lanes.admit_due(A, due()));
    bench.ends(1, A, End::Completed);
    let old = bench.batch();
    bench.lanes.drop_partitions(&[0], &[]);
    assert!(bench.lanes.admit_due(A, due()));
    bench.lanes.on_written(old);
    assert!(!bench.lanes.admit_due(A, due()));
}

#[test]
fn the_same_for_lanes() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A]);
    bench.ends(1, A, End::RetryIn(1));
    let old = bench.batch();
    bench.lanes.drop_partitions(&[0], &[]);
    let blocked = Target {
        handler: A,
        is_blocked: true,
    };
    bench.lanes.admit_record(fetched(2, KEY), &[blocked]);
    bench.lanes.on_written(old);
    bench.record(3, &[A]);
    assert!(bench.runs().is_empty(), "what is before it is not written");
}

#[test]
fn a_hot_key_gives_its_slot_to_a_key_that_waits() {
    let mut bench = Bench::new(true);
    (1..=400).for_each(|id| {
        bench.record_of("hot", id, &[B]);
    });
    bench.record_of("other", 401, &[B]);
    assert_eq!(bench.runs(), [(1, B)], "there is one slot");
    bench.ends(1, B, End::Completed);
    assert_eq!(bench.runs(), [(401, B)]);
    bench.ends(401, B, End::Completed);
    assert_eq!(bench.runs(), [(2, B)]);
}
