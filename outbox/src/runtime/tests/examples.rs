//! Single transitions of lanes, without an engine.

use crate::runtime::tests::{
    HANDLERS, Setup, attempt,
    world::{End, attempt_end},
};
use crate::{
    record::{DeliveryStatus, Partition, Record},
    registry::HandlerIx,
    runtime::lane::{Lanes, OutgoingBatch, Target, Work},
    store::{FetchedDelivery, FetchedRecord, LaneName},
};

/// Lanes, and the records that they started.
struct Bench {
    lanes: Lanes,
    running: Vec<Work>,
}

const A: HandlerIx = HandlerIx::for_tests(0);
const B: HandlerIx = HandlerIx::for_tests(1);
const C: HandlerIx = HandlerIx::for_tests(2);
const KEY: &str = "k";
const PARTITION: Partition = Partition::new(0);

fn lane(handler: HandlerIx) -> LaneName {
    LaneName {
        partition: PARTITION,
        key: KEY.to_owned(),
        handler: HANDLERS[handler.index()].to_owned(),
    }
}

/// A row of the lane of `a`.
fn row(id: i64, number: u32, waiting: bool, blocking: bool, followed: bool) -> FetchedDelivery {
    FetchedDelivery {
        handler: HANDLERS[0].to_owned(),
        is_waiting: waiting,
        blocking,
        has_followers: followed,
        attempt: attempt(number),
        record: fetched(id, KEY),
    }
}

fn fetched(id: i64, key: &str) -> FetchedRecord {
    let record = Record::for_tests(id, key, "");
    FetchedRecord {
        partition: PARTITION,
        record,
    }
}

impl Bench {
    fn new(stop_on_failure: bool) -> Self {
        let setup = Setup {
            stop_on_failure,
            is_transactional: false,
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
        let target = |&handler| Target {
            handler,
            is_blocked: false,
        };
        let targets: Vec<Target> = handlers.iter().map(target).collect();
        self.lanes.admit_record(fetched(id, key), &targets)
    }

    /// The running records.
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
    fn rows(outgoing: &OutgoingBatch) -> Vec<(i64, &'static str, DeliveryStatus)> {
        let batch = outgoing.batch();
        let rows = batch.new_deliveries.iter().chain(&batch.changed_deliveries);
        rows.map(|row| (row.record_id, row.handler, row.status))
            .collect()
    }

    fn write(&mut self) {
        let outgoing = self.batch();
        self.lanes.on_written(outgoing);
    }

    fn assert_empty(&self) {
        assert_eq!(self.lanes.leftovers(), None);
    }
}

#[test]
fn a_record_is_completed_when_all_its_handlers_completed_it() {
    let mut bench = Bench::new(true);
    assert!(bench.record(1, &[A, B]));
    assert_eq!(bench.runs(), [(1, A), (1, B)]);
    bench.ends(1, B, End::Completed);
    assert!(!bench.lanes.has_batch());
    bench.ends(1, A, End::Completed);
    let batch = bench.batch();
    assert_eq!(batch.batch().completed, [1]);
    assert!(!bench.record(1, &[A, B]), "in memory until written");
    bench.lanes.on_written(batch);
    bench.assert_empty();
}

#[test]
fn a_record_without_a_handler_becomes_unhandled() {
    let mut bench = Bench::new(true);
    assert!(bench.record(1, &[]));
    let batch = bench.batch();
    assert_eq!(batch.batch().unhandled, [1]);
    bench.lanes.on_written(batch);
    bench.assert_empty();
}

#[test]
fn a_lane_runs_one_record_at_a_time_and_lanes_run_concurrently() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A]);
    bench.record(2, &[A]);
    bench.record_of("other", 3, &[A]);
    assert_eq!(bench.runs(), [(1, A), (3, A)]);
    bench.ends(1, A, End::Completed);
    assert_eq!(bench.runs(), [(3, A), (2, A)]);
}

#[test]
fn a_handler_runs_as_many_lanes_as_it_has_slots() {
    let mut bench = Bench::new(true);
    bench.record_of("x", 1, &[B]);
    bench.record_of("y", 2, &[B]);
    assert_eq!(bench.runs(), [(1, B)]);
    bench.ends(1, B, End::Completed);
    assert_eq!(bench.runs(), [(2, B)]);
}

#[test]
fn a_retry_gives_rows_to_all_records_of_the_key_in_order() {
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
    assert_eq!(bench.runs(), [(2, C)], "the other lane continues");
    bench.lanes.on_written(batch);
    bench.ends(2, C, End::Completed);
    bench.write();
    bench.assert_empty();
}

#[test]
fn a_skipped_failure_does_not_block_the_lane() {
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
fn a_due_delivery_runs_and_then_the_deliveries_behind_it() {
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
fn a_record_that_is_parked_while_its_lane_is_loaded_causes_another_load() {
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
fn a_written_record_stays_in_memory_until_the_fetch_under_way_ends() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A]);
    bench.lanes.fetch_started(9);
    bench.ends(1, A, End::Completed);
    bench.write();
    assert!(!bench.record(1, &[A]));
    bench.lanes.fetch_ended();
    bench.assert_empty();
}

#[test]
fn evicted_lanes_are_refilled_after_they_are_written() {
    let mut bench = Bench::new(true);
    bench.record_of("x", 1, &[B]);
    bench.record_of("y", 2, &[B]);
    assert!(bench.lanes.evict(1));
    let batch = bench.batch();
    assert_eq!(Bench::rows(&batch), [(2, "b", DeliveryStatus::Waiting)]);
    assert!(
        bench.lanes.handlers_to_refill().is_empty(),
        "a search would find nothing yet"
    );
    bench.lanes.on_written(batch);
    assert_eq!(bench.lanes.handlers_to_refill(), [B]);
    assert_eq!(bench.lanes.in_memory(), 1);
}

/// Found by the laws: the delivery was among the loaded rows too, and blocked the lane.
#[test]
fn a_due_delivery_that_is_read_twice_in_a_fetch_does_not_block_its_lane() {
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
fn a_batch_from_before_a_lost_lease_does_not_forget_a_record_that_was_read_again() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A]);
    bench.ends(1, A, End::Completed);
    let old = bench.batch();
    bench.lanes.drop_partitions(&[PARTITION], &[]);
    assert!(bench.record(1, &[A]));
    bench.lanes.on_written(old);
    assert!(!bench.record(1, &[A]));
}

#[test]
fn a_batch_from_before_a_lost_lease_does_not_forget_a_delivery_that_was_read_again() {
    let mut bench = Bench::new(true);
    let due = || row(1, 2, false, true, false);
    assert!(bench.lanes.admit_due(A, due()));
    bench.ends(1, A, End::Completed);
    let old = bench.batch();
    bench.lanes.drop_partitions(&[PARTITION], &[]);
    assert!(bench.lanes.admit_due(A, due()));
    bench.lanes.on_written(old);
    assert!(!bench.lanes.admit_due(A, due()));
}

#[test]
fn a_batch_from_before_a_lost_lease_does_not_unblock_a_lane_that_was_read_again() {
    let mut bench = Bench::new(true);
    bench.record(1, &[A]);
    bench.ends(1, A, End::RetryIn(1));
    let old = bench.batch();
    bench.lanes.drop_partitions(&[PARTITION], &[]);
    let blocked = Target {
        handler: A,
        is_blocked: true,
    };
    bench.lanes.admit_record(fetched(2, KEY), &[blocked]);
    bench.lanes.on_written(old);
    bench.record(3, &[A]);
    assert!(bench.runs().is_empty(), "record 2 is not written");
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
