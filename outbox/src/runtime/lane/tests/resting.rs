//! Retries that are made from memory.

use crate::runtime::lane::tests::{
    examples::{A, B, Bench},
    world::End,
};
use crate::{runtime::lane::Rest, store::DeliveryRow};

/// Due within this, a retry is brief.
const BRIEF: u8 = 3;
const LONG: u8 = 4;

fn bench() -> Bench {
    Bench::with(true, u64::from(BRIEF))
}

impl Bench {
    fn rests(&mut self) -> Rest {
        let mut rests = self.lanes.take_rests();
        assert_eq!(rests.len(), 1);
        rests.remove(0)
    }

    fn attempts(&mut self) -> Vec<(i64, u32)> {
        self.runs();
        let running = self.running.iter();
        running
            .map(|work| (work.record.id, work.attempt.number))
            .collect()
    }
}

fn attempts(rows: &[DeliveryRow]) -> Vec<(i64, &str, u32, u32)> {
    let of = |row: &DeliveryRow| (row.record_id, row.status, row.attempt, row.was);
    rows.iter().map(of).collect()
}

#[test]
fn a_brief_retry_writes_nothing_and_keeps_its_lane_but_no_place() {
    let mut bench = bench();
    (1..=3).for_each(|id| assert!(bench.record(id, &[B])));
    bench.ends(1, B, End::RetryIn(BRIEF));
    let rest = bench.rests();
    assert_eq!((rest.delay.as_micros(), rest.handler), (3, B));
    assert!(!bench.lanes.has_unwritten());
    assert_eq!(bench.attempts(), [], "the lane waits");
    bench.lanes.rested(&rest);
    assert_eq!(bench.attempts(), [(1, 2)]);
    bench.ends(1, B, End::Completed);
    assert_eq!(bench.attempts(), [(2, 1)]);
    let batch = bench.batch();
    assert!(batch.batch.only_done() && batch.batch.failures.is_empty());
    assert_eq!(batch.batch.done, [1]);
}

#[test]
fn the_place_of_one_that_rests_goes_to_another_lane() {
    let mut bench = bench();
    bench.record(1, &[B]);
    bench.record_of("other", 2, &[B]);
    assert_eq!(bench.runs(), [(1, B)]);
    bench.ends(1, B, End::RetryIn(1));
    assert_eq!(bench.runs(), [(2, B)]);
    let rest = bench.rests();
    bench.lanes.rested(&rest);
    assert_eq!(bench.runs(), [(2, B)], "it waits for a place");
    bench.ends(2, B, End::Completed);
    assert_eq!(bench.attempts(), [(1, 2)]);
}

#[test]
fn a_longer_delay_is_written_with_all_that_failed_before() {
    let mut bench = bench();
    bench.record(1, &[A]);
    bench.ends(1, A, End::RetryIn(1));
    let rest = bench.rests();
    bench.lanes.rested(&rest);
    bench.ends(1, A, End::RetryIn(LONG));
    let batch = bench.batch().batch;
    assert_eq!(attempts(&batch.split_rows), [(1, "scheduled", 3, 2)]);
    let failed: Vec<u32> = batch.failures.iter().map(|row| row.attempt).collect();
    assert_eq!(failed, [1, 2]);
    assert!(bench.lanes.take_rests().is_empty());
}

#[test]
fn a_pause_or_another_handler_writes_what_rests() {
    let other_fails = |bench: &mut Bench| bench.ends(1, B, End::Failed);
    let paused = |bench: &mut Bench| bench.lanes.pause(A, true);
    let left = |bench: &mut Bench| bench.lanes.leave();
    let closed = |bench: &mut Bench| bench.lanes.close(&[0]);
    let why: [&dyn Fn(&mut Bench); 4] = [&other_fails, &paused, &left, &closed];
    for why in why {
        let mut bench = bench();
        bench.record(1, &[A, B]);
        bench.ends(1, A, End::RetryIn(1));
        why(&mut bench);
        let batch = bench.batch().batch;
        let rows = attempts(&batch.split_rows);
        assert!(rows.contains(&(1, "waiting", 2, 2)), "{rows:?}");
        let error = |row: &DeliveryRow| row.handler == "a" && row.error.is_some();
        assert!(batch.split_rows.iter().any(error));
        assert!(batch.failures.iter().any(|row| row.handler == "a"));
    }
}

#[test]
fn what_left_memory_is_not_woken() {
    let mut bench = bench();
    bench.record(1, &[A]);
    bench.ends(1, A, End::RetryIn(1));
    let rest = bench.rests();
    bench.lanes.pause(A, true);
    bench.lanes.rested(&rest);
    assert_eq!(bench.runs(), []);
    bench.write();
    bench.lanes.rested(&rest);
    assert_eq!(bench.runs(), []);
}

#[test]
fn an_old_call_does_not_cut_a_later_rest_short() {
    let mut bench = bench();
    bench.record(1, &[A]);
    bench.ends(1, A, End::RetryIn(1));
    let first = bench.rests();
    bench.lanes.rested(&first);
    bench.ends(1, A, End::RetryIn(2));
    bench.lanes.rested(&first);
    assert_eq!(bench.runs(), []);
}

#[test]
fn the_fifth_failure_is_written_however_soon_the_next_try_is() {
    let mut bench = bench();
    bench.record(1, &[A]);
    for _ in 0..4 {
        bench.ends(1, A, End::RetryIn(1));
        let rest = bench.rests();
        bench.lanes.rested(&rest);
    }
    bench.ends(1, A, End::RetryIn(1));
    let batch = bench.batch().batch;
    assert_eq!(attempts(&batch.split_rows), [(1, "scheduled", 6, 5)]);
    assert_eq!(batch.failures.len(), 5);
}

#[test]
fn what_was_read_from_its_row_or_has_no_order_is_written() {
    for ordered in [true, false] {
        let mut bench = Bench::with(ordered, u64::from(BRIEF));
        bench.record(1, &[A, B]);
        if ordered {
            bench.ends(1, B, End::RetryIn(LONG));
        }
        bench.ends(1, A, End::RetryIn(1));
        assert!(bench.lanes.take_rests().is_empty());
        let rows = Bench::rows(&bench.batch()).len();
        assert!(rows > 1);
    }
}
