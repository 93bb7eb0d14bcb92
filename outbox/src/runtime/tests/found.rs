//! What the laws found to be wrong, made as small as it goes.

use crate::registry::HandlerIx;
use crate::runtime::tests::{
    Setup,
    property::finish,
    world::{End, World},
};

const A: HandlerIx = HandlerIx::for_tests(0);

fn world(transactional: bool) -> World {
    let mut world = World::new(Setup {
        stop_on_failure: true,
        transactional,
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

/// Lanes that were in memory filled the page of the sweep, and the others waited for the next.
#[test]
fn after_a_pause_all_lanes_are_found_whatever_is_in_memory() {
    let mut world = world(false);
    world.pause(A, true);
    publish(&mut world, &[(0, "three"), (1, "one")]);
    read(&mut world);
    world.write_all();
    assert!(finish(&mut world));
}

/// They were looked for before they were written, and then no more.
#[test]
fn lanes_that_were_evicted_are_looked_for_when_they_are_written() {
    let mut world = world(false);
    publish(&mut world, &[(0, "three"), (1, "three")]);
    read(&mut world);
    assert!(world.engine.evict());
    world.finish(1, End::Completed);
    read(&mut world);
    assert!(finish(&mut world));
}

/// Its lanes that ran or were being read took more.
#[test]
fn a_paused_handler_gets_nothing_more() {
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

/// A slot was taken when an invocation was to be started, and not given back if it never was.
#[test]
fn what_is_lost_before_it_starts_gives_its_slot_back() {
    let mut world = world(false);
    publish(&mut world, &[(0, "one"), (2, "one")]);
    world.steal(0, 0);
    world.start_fetch(true, true);
    world.claim(true);
    assert!(finish(&mut world));
}

/// The row that it was to complete was about to be written: the transaction was rolled back, and
/// the record done all the same.
#[test]
fn a_transaction_completes_its_record_before_the_row_of_it_is_written() {
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

/// The lane was left as if the record that ran stood in the database.
#[test]
fn a_lane_that_is_paused_while_it_runs_goes_on_behind_what_runs() {
    let mut world = world(true);
    publish(&mut world, &[(0, "one"), (0, "one"), (0, "three")]);
    read(&mut world);
    world.write_all();
    world.discard(1, false);
    world.pause(A, true);
    assert!(finish(&mut world));
}

/// What was to be written before a lost lease was taken after it, and made the lanes forget the
/// same record, which had been read again and ran.
#[test]
fn what_was_to_be_written_about_a_lost_partition_is_forgotten_with_it() {
    let mut world = world(false);
    world.pause(A, true);
    publish(&mut world, &[(1, "three")]);
    world.steal(1, 0);
    world.start_fetch(true, true);
    world.claim(true);
    world.take_batch();
    read(&mut world);
    world.acknowledge();
    world.wish_sweep();
    read(&mut world);
    assert!(finish(&mut world));
}
