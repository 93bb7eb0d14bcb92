//! All steps in any order. The laws check each step.

use std::fmt;

use proptest::prelude::*;

use crate::record::{Partition, RecordStatus};
use crate::registry::HandlerIx;
use crate::runtime::tests::{
    HANDLERS, Setup,
    world::{End, World},
};

#[derive(Debug, Clone)]
enum Step {
    /// Records of one transaction: key, and whether all handlers take it. Then the delay.
    Publish(Vec<(u16, bool)>, Option<i64>),
    StartFetch {
        poll: bool,
        due: bool,
    },
    /// The next fetch is a sweep.
    Sweep,
    /// Runs this many statements of the fetch.
    Read(u8),
    EndFetch(bool),
    Take,
    Finish(usize, End),
    TakeBatch,
    Commit,
    Acknowledge,
    /// `TakeBatch`, `Commit` and `Acknowledge`.
    Write,
    Time(i64),
    Replay(usize),
    Discard(usize, bool),
    Pause(u16, bool),
    Evict,
    PeerTakes(Partition, u8),
    Claim(bool),
    Crash(bool),
    /// A worker does not start an invocation.
    NotStarted(usize),
    /// Keeps this many partitions; the others close.
    Keep(usize),
    /// Hands drained partitions over, and gets them back.
    HandOver(u8),
}

/// Printed with one step per line.
#[derive(Clone)]
struct Steps(Vec<Step>);

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        self.0
            .iter()
            .try_for_each(|step| writeln!(f, "    {step:?}"))
    }
}

fn setups() -> impl Strategy<Value = Setup> {
    let max_records = prop_oneof![Just(8), Just(16), Just(64)];
    let setup = (any::<bool>(), any::<bool>(), max_records, 1usize..5);
    setup.prop_map(
        |(stop_on_failure, is_transactional, max_records, max_burst)| Setup {
            stop_on_failure,
            is_transactional,
            max_records,
            max_burst,
        },
    )
}

/// `has_faults`: with crashes, lost leases and discards.
fn steps(has_faults: bool) -> impl Strategy<Value = Steps> {
    let end = prop_oneof![
        6 => Just(End::Completed),
        2 => (0u8..4).prop_map(End::RetryIn),
        1 => Just(End::Failed),
    ];
    let records = prop::collection::vec((0u16..4, any::<bool>()), 1..4);
    let delay = prop_oneof![4 => Just(None), 1 => (1i64..4).prop_map(Some)];
    let usual = prop_oneof![
        6 => (records, delay).prop_map(|(records, delay)| Step::Publish(records, delay)),
        8 => (any::<bool>(), any::<bool>()).prop_map(|(poll, due)| Step::StartFetch { poll, due }),
        1 => Just(Step::Sweep),
        4 => (1u8..7).prop_map(Step::Read),
        8 => prop_oneof![9 => Just(true), 1 => Just(false)].prop_map(Step::EndFetch),
        8 => Just(Step::Take),
        14 => (0usize..8, end).prop_map(|(at, end)| Step::Finish(at, end)),
        4 => Just(Step::TakeBatch),
        3 => Just(Step::Commit),
        3 => Just(Step::Acknowledge),
        3 => Just(Step::Write),
        4 => (1i64..4).prop_map(Step::Time),
        2 => (0usize..8).prop_map(Step::Replay),
        2 => (0u16..3, any::<bool>()).prop_map(|(handler, on)| Step::Pause(handler, on)),
        1 => Just(Step::Evict),
        2 => (0usize..8).prop_map(Step::NotStarted),
        3 => (0usize..3).prop_map(Step::Keep),
        3 => (0u8..3).prop_map(Step::HandOver),
    ];
    let faults = prop_oneof![
        2 => (0usize..8, any::<bool>()).prop_map(|(at, failed)| Step::Discard(at, failed)),
        2 => (0u16..2, 0u8..3).prop_map(|(number, work)| Step::PeerTakes(Partition::new(number), work)),
        3 => any::<bool>().prop_map(Step::Claim),
        1 => any::<bool>().prop_map(Step::Crash),
    ];
    let step = if has_faults {
        prop_oneof![8 => usual, 1 => faults].boxed()
    } else {
        usual.boxed()
    };
    prop::collection::vec(step, 1..150).prop_map(Steps)
}

fn step(world: &mut World, step: Step) {
    match step {
        Step::Publish(records, delay) => {
            for (key, all) in records {
                let event = if all { "three" } else { "one" };
                world.db.publish(key, event, delay);
            }
        }
        Step::StartFetch { poll, due } => {
            world.start_fetch(poll, due);
        }
        Step::Sweep => world.request_sweep(),
        Step::Read(statements) => {
            let _ = (0..statements).all(|_| world.read());
        }
        Step::EndFetch(succeeds) => world.end_fetch(succeeds),
        Step::Take => world.take(),
        Step::Finish(at, end) => world.finish(at, end),
        Step::TakeBatch => world.take_batch(),
        Step::Commit => world.commit(),
        Step::Acknowledge => world.acknowledge(),
        Step::Write => world.write_all(),
        Step::Time(passes) => world.db.now += passes,
        Step::Replay(at) => world.replay(at),
        Step::Discard(at, failed) => world.discard(at, failed),
        Step::Pause(handler, paused) => world.pause(HandlerIx::for_tests(handler), paused),
        Step::Evict => {
            world.engine.evict();
        }
        Step::PeerTakes(partition, work) => world.peer_takes(partition, work),
        Step::Claim(all) => world.claim(all),
        Step::Crash(commit) => world.crash(commit),
        Step::NotStarted(at) => world.not_started(at),
        Step::Keep(share) => world.keep(share),
        Step::HandOver(work) => world.hand_over(work),
    }
}

/// Fetches until there is nothing to read. Fails if that never happens: it would be a busy loop.
fn run_until_idle(world: &mut World) {
    for _ in 0..200 {
        world.take();
        world.write_all();
        if !world.start_fetch(false, false) {
            return;
        }
        world.end_fetch(true);
    }
    panic!("never stops reading: {:?}", world.engine);
}

fn is_done(world: &World) -> bool {
    let mut rows = world.db.records.values();
    rows.all(|row| [RecordStatus::Completed, RecordStatus::Discarded].contains(&row.status))
}

/// From now on everything succeeds. Returns whether all records were finished without further
/// sweeps than those after an error, a pause or a lost lease.
pub(super) fn finish(world: &mut World) -> bool {
    world.claim(true);
    world.keep(2);
    (0..)
        .zip(HANDLERS)
        .for_each(|(ix, _)| world.pause(HandlerIx::for_tests(ix), false));
    for round in 0..400 {
        if round >= 200 && round % 4 == 0 {
            world.request_sweep();
        }
        run_until_idle(world);
        while !world.running.is_empty() {
            world.finish(0, End::Completed);
            world.take();
        }
        run_until_idle(world);
        while let Some(id) = world.pick(0, true) {
            world.db.replay(id);
        }
        world.db.now += 1000;
        if is_done(world) && world.running.is_empty() {
            world.laws.nothing_is_lost(&world.db);
            // After the last fetch, memory forgets the rest.
            world.end_fetch(true);
            assert_eq!(world.engine.lanes().leftovers(), None);
            return round < 200;
        }
        world.start_fetch(true, true);
        world.end_fetch(true);
    }
    panic!("never ends: {:?}", world.db.unfinished());
}

fn run(setup: Setup, steps: Steps) -> bool {
    let mut world = World::new(setup);
    let discards = |step: &Step| matches!(step, Step::Discard(..));
    // A blocking delivery may be discarded before the records behind it are written. Then only a
    // sweep finds those.
    let may_need_sweep = steps.0.iter().any(discards);
    for next in steps.0 {
        step(&mut world, next);
    }
    finish(&mut world) || may_need_sweep
}

proptest! {
    /// Without crashes, lost leases and discards.
    #[test]
    fn lanes_keep_the_laws(setup in setups(), steps in steps(false)) {
        prop_assert!(run(setup, steps), "only a sweep helped");
    }

    /// With crashes, lost leases and discards.
    #[test]
    fn lanes_keep_the_laws_through_crashes(setup in setups(), steps in steps(true)) {
        prop_assert!(run(setup, steps), "only a sweep helped");
    }
}
