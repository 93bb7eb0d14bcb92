//! A fetch, statement by statement: others write in between.

use std::mem;

use tokio::time::Instant;

use crate::runtime::tests::world::World;
use crate::{
    runtime::fetch::{FetchPlan, FetchRequest, Fetched, PollReason, fetcher::by_lane},
    store::{FetchedDelivery, OpenWriters},
};

/// A fetch that is under way, so many of its statements done.
pub(super) struct Fetch {
    round: FetchPlan,
    done: u8,
    arrived: Fetched,
}

/// How many deliveries of a parked lane are read at once; few, so that some are left.
const PER_LANE: usize = 2;
/// How many keys of a partition in which something blocks; few, so that some are not known.
const KEYS_PER_PART: usize = 2;
const STATEMENTS: u8 = 7;

impl World {
    /// Starts a fetch, unless one is under way or there is nothing to read.
    pub(super) fn round(&mut self, poll: bool, due: bool) -> bool {
        if self.fetch.is_some() {
            return false;
        }
        let sweep = mem::take(&mut self.sweep);
        let want = FetchRequest {
            poll: (poll || sweep).then_some(PollReason::Signalled),
            due: due || sweep,
            sweep,
            clock_offset: 0,
        };
        self.fetch = self.engine.plan_fetch(want).map(|round| Fetch {
            round,
            done: 0,
            arrived: Fetched::default(),
        });
        for lane in self.fetch.iter().flat_map(|fetch| &fetch.round.lanes) {
            assert!(!self.engine.is_closing(lane.part), "reads {lane:?}");
        }
        self.fetch.is_some()
    }

    /// Like the slow sweep underneath.
    pub(super) fn wish_sweep(&mut self) {
        self.sweep = true;
    }

    /// The next statement of the fetch that is under way. Whether there was one.
    pub(super) fn read(&mut self) -> bool {
        let Some(fetch) = &mut self.fetch else {
            return false;
        };
        let Fetch {
            round,
            done,
            arrived,
        } = fetch;
        let (db, parts) = (&self.db, &round.parts);
        match *done {
            0 => {
                let rows = db.lanes(&round.lanes, PER_LANE);
                arrived.lanes = by_lane(&round.lanes, rows);
            }
            1 => {
                let limit = round.due.unwrap_or(0);
                let due = db.due_deliveries(parts, &round.handlers, limit);
                let known = |due: &FetchedDelivery| {
                    let handler = round.router.by_id(&due.handler);
                    let name = handler.map(|handler| (due.fetched.record.id, handler));
                    name.is_some_and(|name| round.known_deliveries.contains(&name))
                };
                arrived.due_deliveries = due.into_iter().filter(|due| !known(due)).collect();
            }
            2 => arrived.due_records = db.due_records(parts, round.due.unwrap_or(0)),
            3 => {
                if let Some(plan) = &round.pending {
                    let now = Instant::now();
                    self.late
                        .look(parts, round.highest, OpenWriters::Serial, now);
                    if round.sweep {
                        self.late.read_again(parts, 0);
                    }
                    let pages = self.late.lowered(&plan.pages);
                    let known = match pages == plan.pages {
                        true => &[],
                        false => &*round.known,
                    };
                    arrived.pending = db.pending(&pages, known, plan.per_page, plan.limit);
                    self.late.read(plan, &arrived.pending);
                }
            }
            4 => {
                if round.sweep {
                    let keys = db.blocked_keys(parts, KEYS_PER_PART);
                    arrived.may_block = Some(round.may_block.read(&keys, KEYS_PER_PART));
                }
            }
            5 => {
                arrived.runnable = match round.look {
                    Some(limit) => db.runnable(parts, &round.handlers, limit),
                    None => db.runnable(parts, &round.thirsty, round.thirst),
                }
            }
            6 => {
                for lane in db.blocked(&arrived.lanes_to_ask(round)) {
                    let handlers = arrived.blocked.entry(lane.key).or_default();
                    handlers.insert(lane.handler);
                }
            }
            _ => return false,
        }
        *done += 1;
        *done <= STATEMENTS
    }

    /// The rest of the fetch is read, and all of it delivered; or it failed.
    pub(super) fn arrive(&mut self, works: bool) {
        while works && self.read() {}
        let Some(Fetch { round, arrived, .. }) = self.fetch.take() else {
            return;
        };
        if works {
            self.engine.on_fetched(&round, arrived);
        } else {
            self.engine.on_fetch_failed(round);
            self.sweep = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Setup,
        world::{End, World},
    };

    fn world() -> World {
        World::new(Setup {
            ordered: true,
            transactional: false,
            most: 8,
            longest_turn: 1,
        })
    }

    fn publish(world: &mut World, keys: &[u16]) {
        keys.iter()
            .for_each(|key| world.db.publish(*key, "one", None));
    }

    fn read(world: &mut World) {
        world.round(true, false);
        world.arrive(true);
        world.take();
    }

    /// The keys whose lanes the next fetch asks about.
    fn asked(world: &mut World) -> Vec<String> {
        world.round(true, false);
        (0..6).for_each(|_| assert!(world.read()));
        let fetch = world.fetch.as_ref().unwrap();
        let lanes = fetch.arrived.lanes_to_ask(&fetch.round);
        lanes.into_iter().map(|lane| lane.key).collect()
    }

    #[test]
    fn nothing_is_asked_about_a_key_in_which_nothing_blocks() {
        let mut world = world();
        read(&mut world);
        for sweep in [false, true] {
            // All of the same partition.
            publish(&mut world, &[0, 2, 4]);
            read(&mut world);
            while let Some((work, ..)) = world.running.first() {
                let fails = &*work.record.key == "k0";
                let end = if fails { End::Failed } else { End::Completed };
                world.finish(0, end);
                world.take();
            }
            world.write_all();
            if sweep {
                world.wish_sweep();
            }
            publish(&mut world, &[0, 2, 4]);
            // What was written by us, or what the sweep has found.
            assert_eq!(asked(&mut world), ["k0"]);
            world.arrive(true);
            world.take();
            let running = world.running.iter().map(|(work, ..)| &*work.record.key);
            assert_eq!(running.collect::<Vec<_>>(), ["k2", "k4"]);
            world.finish(0, End::Completed);
            world.finish(0, End::Completed);
            world.write_all();
        }
    }

    #[test]
    fn of_a_partition_that_was_just_gained_every_lane_is_asked_about_unless_the_sweep_says_more() {
        let mut world = world();
        publish(&mut world, &[0, 2]);
        world.round(true, false);
        (0..4).for_each(|_| assert!(world.read()));
        let fetch = world.fetch.as_ref().unwrap();
        assert_eq!(fetch.arrived.lanes_to_ask(&fetch.round).len(), 2);
        assert!(world.read());
        let fetch = world.fetch.as_ref().unwrap();
        assert!(fetch.arrived.lanes_to_ask(&fetch.round).is_empty());
    }

    #[test]
    fn what_is_pending_comes_before_the_look_for_lanes_that_could_run() {
        let mut world = world();
        let looks = |world: &mut World| {
            let started = world.round(false, false);
            let look = world.fetch.as_ref().and_then(|fetch| fetch.round.look);
            world.arrive(true);
            (started, look.is_some())
        };
        // Nothing is pending: at once after the sweep.
        assert_eq!(looks(&mut world), (true, false));
        assert_eq!(looks(&mut world), (true, true));
        assert_eq!(looks(&mut world), (false, false));
        // As much as there is room for, but not for ever.
        publish(&mut world, &[0; 20]);
        world.wish_sweep();
        let pages = (0..9).take_while(|_| !looks(&mut world).1).count();
        assert!((1..=4).contains(&pages), "{pages}");
        assert_eq!(looks(&mut world), (false, false));
    }
}
