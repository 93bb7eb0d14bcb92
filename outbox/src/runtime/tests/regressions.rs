//! Bugs that the laws found, as small as possible. The comments describe the old, wrong behaviour.

use crate::runtime::tests::{
    Setup,
    property::finish,
    world::{End, World},
};
use crate::{record::Partition, registry::HandlerIx};

const A: HandlerIx = HandlerIx::for_tests(0);

fn world(is_transactional: bool) -> World {
    let mut world = World::new(Setup {
        stop_on_failure: true,
        is_transactional,
        max_records: 8,
        max_burst: 1,
    });
    read(&mut world);
    world
}

fn publish(world: &mut World, records: &[(u16, &'static str)]) {
    for (key, event) in records {
        world.db.publish(*key, event, None);
    }
}

fn read(world: &mut World) {
    world.start_fetch(true, true);
    world.end_fetch(true);
    world.take();
}

/// Lanes in memory used up the limit of the search, and the others waited for the next one.
#[test]
fn after_a_pause_the_search_finds_all_lanes() {
    let mut world = world(false);
    world.pause(A, true);
    publish(&mut world, &[(0, "three"), (1, "one")]);
    read(&mut world);
    world.write_all();
    assert!(finish(&mut world));
}

/// The search ran before the evicted lanes were written, and was not repeated.
#[test]
fn evicted_lanes_are_searched_after_they_are_written() {
    let mut world = world(false);
    publish(&mut world, &[(0, "three"), (1, "three")]);
    read(&mut world);
    assert!(world.engine.evict());
    world.finish(1, End::Completed);
    read(&mut world);
    assert!(finish(&mut world));
}

/// Its lanes that ran or were being loaded started more records.
#[test]
fn a_paused_handler_starts_no_further_record() {
    let mut world = world(false);
    publish(&mut world, &[(0, "one")]);
    read(&mut world);
    world.pause(A, true);
    publish(&mut world, &[(0, "one")]);
    read(&mut world);
    world.finish(0, End::Completed);
    world.take();
    assert!(world.running.is_empty());
    assert!(finish(&mut world));
}

/// A burst had taken its slot. If it was not started, the slot was not freed.
#[test]
fn a_burst_that_is_lost_before_it_starts_frees_its_slot() {
    let mut world = world(false);
    publish(&mut world, &[(0, "one"), (2, "one")]);
    world.peer_takes(Partition::new(0), 0);
    world.start_fetch(true, true);
    world.claim(true);
    assert!(finish(&mut world));
}

/// The row of the delivery was not written yet, so the transaction was rolled back. The record was
/// completed all the same.
#[test]
fn a_transaction_completes_its_record_before_its_row_is_written() {
    let mut world = world(true);
    publish(&mut world, &[(0, "one"), (0, "one"), (0, "three")]);
    read(&mut world);
    world.finish(0, End::Completed);
    world.take();
    let second = |work: &crate::runtime::lane::Work| work.record.id == 2;
    let at = world.running.iter().position(|(work, ..)| second(work));
    world.finish(at.unwrap(), End::Completed);
    assert!(finish(&mut world));
}

/// The lane was blocked as if the running record were in the database.
#[test]
fn a_lane_that_is_paused_while_it_runs_continues_after_the_running_record() {
    let mut world = world(true);
    publish(&mut world, &[(0, "one"), (0, "one"), (0, "three")]);
    read(&mut world);
    world.write_all();
    world.discard(1, false);
    world.pause(A, true);
    assert!(finish(&mut world));
}

/// Changes from before a lost lease were in a batch that was taken after it. When that was written,
/// the lanes forgot the same record, which had been read again and ran.
#[test]
fn unwritten_changes_of_a_lost_partition_are_dropped() {
    let mut world = world(false);
    world.pause(A, true);
    publish(&mut world, &[(1, "three")]);
    world.peer_takes(Partition::new(1), 0);
    world.start_fetch(true, true);
    world.claim(true);
    world.take_batch();
    read(&mut world);
    world.acknowledge();
    world.request_sweep();
    read(&mut world);
    assert!(finish(&mut world));
}

/// Memory forgot the record as written, the next fetch read it, and it started in a partition of
/// another process.
#[test]
fn a_record_of_a_refused_batch_does_not_start_before_the_next_claim() {
    let mut world = world(false);
    publish(&mut world, &[(0, "one")]);
    read(&mut world);
    world.peer_takes_unnoticed(Partition::new(0));
    world.finish(0, End::Completed);
    world.write_all();
    world.sweep = true;
    read(&mut world);
    assert!(world.running.is_empty());
    world.claim(true);
    read(&mut world);
    assert_eq!(world.running.len(), 1, "the partition came back");
    assert!(finish(&mut world));
}

/// A fetch was under way when the batch was refused. Its records and lanes were admitted.
#[test]
fn rows_of_a_partition_that_was_refused_during_the_fetch_are_ignored() {
    let mut world = world(false);
    world.pause(A, true);
    publish(&mut world, &[(0, "three")]);
    read(&mut world);
    world.write_all();
    // Once this is written, the next fetch searches for the lanes of the handler.
    world.pause(A, false);
    world.write_all();
    publish(&mut world, &[(2, "three")]);
    world.start_fetch(true, true);
    while world.read() {}
    world.peer_takes_unnoticed(Partition::new(0));
    world.finish(0, End::Completed);
    world.write_all();
    world.end_fetch(true);
    world.take();
    assert!(world.running.is_empty());
    assert_eq!(world.engine.lanes().lane_count(), 0);
    world.claim(false);
    assert!(finish(&mut world));
}
