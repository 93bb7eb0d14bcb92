//! A fetch, statement by statement: others write in between.

use std::mem;

use tokio::time::Instant;

use crate::runtime::tests::world::World;
use crate::{
    runtime::fetch::{FetchPlan, FetchRequest, Fetched, PollReason, plan::group_by_lane},
    store::{DueDeliveryName, FetchedDelivery, InMemory, OpenWriters},
};

/// A fetch that is under way, so many of its statements done.
pub(super) struct Fetch {
    pub(super) plan: FetchPlan,
    done: u8,
    fetched: Fetched,
}

/// How many deliveries of a parked lane are read at once; few, so that some are left.
const PER_LANE: usize = 2;
/// How many keys of a partition in which something blocks; few, so that some are not known.
const KEYS_PER_PART: usize = 2;
/// Seven statements, and the end.
const STEPS: u8 = 8;

impl World {
    /// Starts a fetch, unless one is under way or there is nothing to read.
    pub(super) fn start_fetch(&mut self, poll: bool, due: bool) -> bool {
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
        self.fetch = self.engine.plan_fetch(want).map(|plan| Fetch {
            plan,
            done: 0,
            fetched: Fetched::default(),
        });
        for lane in self.fetch.iter().flat_map(|fetch| &fetch.plan.load) {
            assert!(!self.engine.lanes().is_closing(lane.part), "reads {lane:?}");
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
            plan,
            done,
            fetched,
        } = fetch;
        let (db, parts) = (&self.db, &plan.partitions);
        match *done {
            0 => {
                let rows = db.lanes(&plan.load, PER_LANE);
                fetched.loaded = group_by_lane(&plan.load, rows);
            }
            1 => {
                if let Some(due) = &plan.due {
                    let rows = db.due_deliveries(parts, &plan.handlers, due.delivery_limit());
                    let names: Vec<DueDeliveryName> = (0..).zip(&rows).map(name_of).collect();
                    let new = due.new_deliveries(&names, &plan.router);
                    let rows = (0..).zip(rows).filter(|(at, _)| new.contains(at));
                    fetched.due_deliveries = rows.map(|(_, row)| row).collect();
                }
            }
            2 => {
                if let Some(due) = &plan.due {
                    let deliveries = fetched.due_deliveries.len();
                    let rows = db.due_records(parts, due.record_limit());
                    fetched.due_records = due.new_records(rows, deliveries);
                }
            }
            3 => {
                if let Some(pending) = &plan.pending {
                    let (pages, now) = (&pending.pages, Instant::now());
                    let writers = OpenWriters::Serial;
                    self.late.observe(parts, pending.highest_seen, writers, now);
                    if plan.sweep {
                        self.late.reread(parts, 0);
                    }
                    let lowered = self.late.lower(&pages.pages);
                    let is_lowered = lowered != pages.pages;
                    let known: &[InMemory] = if is_lowered { &pending.in_memory } else { &[] };
                    fetched.pending = db.pending(&lowered, known, pages.per_page, pages.limit);
                }
            }
            4 => {
                if plan.sweep {
                    let keys = db.blocked_keys(parts, KEYS_PER_PART);
                    let keys = plan.blocking_keys.replaced_by(&keys, KEYS_PER_PART);
                    fetched.blocking_keys = Some(keys);
                }
            }
            5 => {
                if let Some(search) = &plan.find_runnable {
                    let ids = search.handlers.iter().map(|ix| plan.router.id_of(*ix));
                    let ids: Vec<&str> = ids.collect();
                    fetched.runnable = db.runnable(parts, &ids, search.limit);
                }
            }
            6 => fetched.add_blocked(db.blocked(&fetched.lanes_to_check(plan))),
            7 => {
                if let Some(pending) = &plan.pending {
                    self.late.pages_read(&pending.pages, &fetched.pending);
                }
            }
            _ => return false,
        }
        *done += 1;
        *done <= STEPS
    }

    /// The rest of the fetch is read, and all of it delivered; or it failed.
    pub(super) fn end_fetch(&mut self, works: bool) {
        while works && self.read() {}
        let Some(Fetch { plan, fetched, .. }) = self.fetch.take() else {
            return;
        };
        if works {
            self.engine.on_fetched(&plan, fetched);
        } else {
            self.engine.on_fetch_failed(plan);
            self.sweep = true;
        }
    }
}

/// A delivery by its place in the answer.
fn name_of((id, row): (i64, &FetchedDelivery)) -> DueDeliveryName {
    DueDeliveryName {
        id,
        record_id: row.fetched.record.id,
        handler: row.handler.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Setup,
        world::{End, World},
    };
    use crate::store::RunnableOrder;

    fn world() -> World {
        World::new(Setup {
            stop_on_failure: true,
            transactional: false,
            max_records: 8,
            max_burst: 1,
        })
    }

    fn publish(world: &mut World, keys: &[u16]) {
        keys.iter()
            .for_each(|key| world.db.publish(*key, "one", None));
    }

    fn read(world: &mut World) {
        world.start_fetch(true, false);
        world.end_fetch(true);
        world.take();
    }

    /// The keys whose lanes the next fetch asks about.
    fn asked(world: &mut World) -> Vec<String> {
        world.start_fetch(true, false);
        (0..6).for_each(|_| assert!(world.read()));
        let fetch = world.fetch.as_ref().unwrap();
        let lanes = fetch.fetched.lanes_to_check(&fetch.plan);
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
            world.end_fetch(true);
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
        world.start_fetch(true, false);
        (0..4).for_each(|_| assert!(world.read()));
        let fetch = world.fetch.as_ref().unwrap();
        assert_eq!(fetch.fetched.lanes_to_check(&fetch.plan).len(), 2);
        assert!(world.read());
        let fetch = world.fetch.as_ref().unwrap();
        assert!(fetch.fetched.lanes_to_check(&fetch.plan).is_empty());
    }

    #[test]
    fn what_is_pending_comes_before_the_look_for_lanes_that_could_run() {
        let mut world = world();
        let looks = |world: &mut World| {
            let started = world.start_fetch(false, false);
            let fetch = world.fetch.as_ref();
            let search = fetch.and_then(|fetch| fetch.plan.find_runnable.as_ref());
            let look = search.is_some_and(|search| search.order == RunnableOrder::EveryLane);
            world.end_fetch(true);
            (started, look)
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

    #[test]
    fn a_sweep_that_meets_a_crowded_memory_is_made_later() {
        let mut world = world();
        read(&mut world);
        publish(&mut world, &[0, 1, 2, 3, 4, 5, 6, 7]);
        read(&mut world);
        assert!(world.engine.is_full());
        world.wish_sweep();
        world.start_fetch(true, false);
        world.end_fetch(true);
        while !world.running.is_empty() {
            world.finish(0, End::Completed);
            world.take();
        }
        world.write_all();
        assert!(world.start_fetch(false, false), "there is room now");
        assert!(world.fetch.as_ref().unwrap().plan.sweep);
        world.end_fetch(true);
        assert!(!world.start_fetch(false, false) || !world.fetch.as_ref().unwrap().plan.sweep);
    }

    #[test]
    fn what_is_due_is_read_only_as_far_as_there_is_room() {
        let mut world = world();
        read(&mut world);
        publish(&mut world, &[0, 2, 4, 6]);
        read(&mut world);
        while !world.running.is_empty() {
            world.finish(0, End::RetryIn(1));
            world.take();
        }
        world.write_all();
        assert_eq!(world.engine.lanes().in_memory(), 0, "four retries");
        publish(&mut world, &[1, 3, 5]);
        read(&mut world);
        (20..40).for_each(|key| world.db.publish(key, "one", Some(1)));
        world.db.now += 10;
        world.start_fetch(false, true);
        world.end_fetch(true);
        assert_eq!(world.engine.lanes().in_memory(), 8);
    }
}
