//! A fetch, statement by statement: other steps may come in between.

use std::mem;

use tokio::time::Instant;

use crate::runtime::tests::world::World;
use crate::{
    runtime::fetch::{FetchPlan, FetchRequest, Fetched, PollReason, plan::group_by_lane},
    store::{DueDeliveryName, FetchedDelivery, InMemory, OpenWriters},
};

/// A fetch that is under way. `done` of its statements have run.
pub(super) struct Fetch {
    pub(super) plan: FetchPlan,
    done: u8,
    fetched: Fetched,
}

/// How many deliveries of a parked lane a fetch loads. The number is low, so that some are left.
const ROWS_PER_LANE: usize = 2;
/// How many blocking keys of a partition a sweep reads. The number is low, so that some are
/// missing.
const KEYS_PER_PARTITION: usize = 2;
/// Seven statements, and the notes about the pages.
const STEPS: u8 = 8;

impl World {
    /// Starts a fetch, unless one is under way or there is nothing to read.
    pub(super) fn start_fetch(&mut self, poll: bool, due: bool) -> bool {
        if self.fetch.is_some() {
            return false;
        }
        let sweep = mem::take(&mut self.sweep);
        let request = FetchRequest {
            poll: (poll || sweep).then_some(PollReason::Signalled),
            due: due || sweep,
            sweep,
            clock_offset: 0,
        };
        self.fetch = self.engine.plan_fetch(request).map(|plan| Fetch {
            plan,
            done: 0,
            fetched: Fetched::default(),
        });
        for lane in self.fetch.iter().flat_map(|fetch| &fetch.plan.load) {
            assert!(
                !self.engine.lanes().is_closing(lane.partition),
                "reads {lane:?}"
            );
        }
        self.fetch.is_some()
    }

    /// The next fetch is a sweep, as every two minutes.
    pub(super) fn request_sweep(&mut self) {
        self.sweep = true;
    }

    /// Runs the next statement of the fetch that is under way. Returns whether there was one.
    pub(super) fn read(&mut self) -> bool {
        let Some(fetch) = &mut self.fetch else {
            return false;
        };
        let Fetch {
            plan,
            done,
            fetched,
        } = fetch;
        let (db, partitions) = (&self.db, &plan.partitions);
        match *done {
            0 => {
                let rows = db.lane_heads(&plan.load, ROWS_PER_LANE);
                fetched.loaded = group_by_lane(&plan.load, rows);
            }
            1 => {
                if let Some(due) = &plan.due {
                    let rows = db.due_deliveries(partitions, &plan.handlers, due.delivery_limit());
                    let names: Vec<DueDeliveryName> = (0..).zip(&rows).map(name_of).collect();
                    let new = due.new_deliveries(&names, &plan.router);
                    let rows = (0..).zip(rows).filter(|(at, _)| new.contains(at));
                    fetched.due_deliveries = rows.map(|(_, row)| row).collect();
                }
            }
            2 => {
                if let Some(due) = &plan.due {
                    let deliveries = fetched.due_deliveries.len();
                    let rows = db.due_records(partitions, due.record_limit());
                    fetched.due_records = due.new_records(rows, deliveries);
                }
            }
            3 => {
                if let Some(pending) = &plan.pending {
                    let (pages, now) = (&pending.pages, Instant::now());
                    let writers = OpenWriters::Serial;
                    self.late
                        .observe(partitions, pending.highest_seen, writers, now);
                    if plan.sweep {
                        self.late.reread(partitions, 0);
                    }
                    let lowered = self.late.lower(&pages.pages);
                    let is_lowered = lowered != pages.pages;
                    let in_memory: &[InMemory] = if is_lowered { &pending.in_memory } else { &[] };
                    let (per_page, limit) = (pages.per_page, pages.limit);
                    fetched.pending = db.pending_records(&lowered, in_memory, per_page, limit);
                }
            }
            4 => {
                if plan.sweep {
                    let keys = db.blocking_keys(partitions, KEYS_PER_PARTITION);
                    let keys = plan.blocking_keys.replaced_by(&keys, KEYS_PER_PARTITION);
                    fetched.blocking_keys = Some(keys);
                }
            }
            5 => {
                if let Some(search) = &plan.find_runnable {
                    let ids = search.handlers.iter().map(|ix| plan.router.id_of(*ix));
                    let ids: Vec<&str> = ids.collect();
                    fetched.runnable = db.runnable_lanes(partitions, &ids, search.limit);
                }
            }
            6 => fetched.add_blocked(db.blocked_among(&fetched.lanes_to_check(plan))),
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

    /// The fetch reads the rest and succeeds, or it fails.
    pub(super) fn end_fetch(&mut self, succeeds: bool) {
        while succeeds && self.read() {}
        let Some(Fetch { plan, fetched, .. }) = self.fetch.take() else {
            return;
        };
        if succeeds {
            self.engine.on_fetched(&plan, fetched);
        } else {
            self.engine.on_fetch_failed(plan);
            self.sweep = true;
        }
    }
}

/// A delivery, with its position in the answer as its id.
fn name_of((id, row): (i64, &FetchedDelivery)) -> DueDeliveryName {
    DueDeliveryName {
        id,
        record_id: row.record.record.id,
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
            is_transactional: false,
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

    /// The keys whose lanes the next fetch checks.
    fn checked_keys(world: &mut World) -> Vec<String> {
        world.start_fetch(true, false);
        (0..6).for_each(|_| assert!(world.read()));
        let fetch = world.fetch.as_ref().unwrap();
        let lanes = fetch.fetched.lanes_to_check(&fetch.plan);
        lanes.into_iter().map(|lane| lane.key).collect()
    }

    #[test]
    fn only_lanes_of_blocking_keys_are_checked() {
        let mut world = world();
        read(&mut world);
        for sweep in [false, true] {
            // All keys are of the same partition.
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
                world.request_sweep();
            }
            publish(&mut world, &[0, 2, 4]);
            // The engine added the key with its batch, or the sweep read it.
            assert_eq!(checked_keys(&mut world), ["k0"]);
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
    fn every_lane_of_a_gained_partition_is_checked_until_the_sweep_has_read_blocking_keys() {
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
    fn pending_records_come_before_the_search_for_runnable_lanes() {
        let mut world = world();
        let fetch = |world: &mut World| {
            let started = world.start_fetch(false, false);
            let under_way = world.fetch.as_ref();
            let search = under_way.and_then(|fetch| fetch.plan.find_runnable.as_ref());
            let has_search = search.is_some_and(|search| search.order == RunnableOrder::EveryLane);
            world.end_fetch(true);
            (started, has_search)
        };
        // Nothing is pending: the search follows the sweep at once.
        assert_eq!(fetch(&mut world), (true, false));
        assert_eq!(fetch(&mut world), (true, true));
        assert_eq!(fetch(&mut world), (false, false));
        // Pages come first while there is room, at most four.
        publish(&mut world, &[0; 20]);
        world.request_sweep();
        let pages = (0..9).take_while(|_| !fetch(&mut world).1).count();
        assert!((1..=4).contains(&pages), "{pages}");
        assert_eq!(fetch(&mut world), (false, false));
    }

    #[test]
    fn a_sweep_without_room_is_made_later() {
        let mut world = world();
        read(&mut world);
        publish(&mut world, &[0, 1, 2, 3, 4, 5, 6, 7]);
        read(&mut world);
        assert!(world.engine.is_full());
        world.request_sweep();
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
    fn due_rows_are_read_only_while_there_is_room() {
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
