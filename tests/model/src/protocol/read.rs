//! Reading: the writers first, then the records, then into the lanes.

use super::Protocol;
use crate::{
    mistake::Mistake,
    scenario::{PARTITIONS, RECORDS},
    step::Step,
    worker::{Life, Listening, Place, Reading},
    world::World,
};

impl Protocol {
    pub(super) fn read_steps(&self, world: &World, w: usize, steps: &mut Vec<Step>) {
        let worker = &world.workers[w];
        if !worker.lives() {
            return;
        }
        match worker.reading {
            Reading::Idle => {
                let wants = match worker.listening {
                    Listening::Off => worker.holds().contains(&true),
                    Listening::Announced | Listening::Notified => true,
                    Listening::On => false,
                };
                if wants && worker.valid && worker.life == Life::Running {
                    steps.push(Step::Look { w });
                }
            }
            Reading::Looked { .. } => steps.push(Step::Read { w }),
            Reading::Read { .. } => steps.push(Step::Arrive { w }),
            Reading::Claiming { .. } | Reading::Claimed { .. } => {}
        }
    }

    pub(super) fn look(&self, world: &mut World, w: usize) {
        let writers = world.db.writers();
        let worker = &mut world.workers[w];
        if worker.listening == Listening::Off {
            worker.notified = false;
        }
        if !self.makes(Mistake::WritersAfterReading) {
            let (holds, highest) = (worker.holds(), worker.highest());
            worker.late.observe(holds, highest, writers);
        }
        let mut from = worker.leases.map(|held| held.after);
        if !self.makes(Mistake::NoRescan) && !self.makes(Mistake::LateInAnotherStatement) {
            for (p, from) in from.iter_mut().enumerate() {
                *from = worker.late.lower(p, *from);
            }
        }
        worker.reading = Reading::Looked {
            from,
            to: [u8::MAX; PARTITIONS],
            writers: writers != 0,
        };
    }

    pub(super) fn read(&self, world: &mut World, w: usize) {
        let Reading::Looked { from, to, writers } = world.workers[w].reading else {
            return;
        };
        let first_of_two =
            self.makes(Mistake::LateInAnotherStatement) && to == [u8::MAX; PARTITIONS];
        let mut rows = 0;
        for p in self.partitions() {
            let of_page = self.page(world, w, p, from[p], to[p]);
            let bits: u8 = of_page.iter().map(|r| 1 << r).sum();
            rows |= bits;
            let worker = &mut world.workers[w];
            let counts = !self.makes(Mistake::WritersAfterReading) && !first_of_two;
            if worker.holds()[p] && counts {
                let all = of_page.len() < self.scenario.page;
                worker
                    .late
                    .page_read(p, worker.leases[p].after, id(&of_page), all);
            }
        }
        if first_of_two {
            // Now those that came late, up to where this began.
            let late = world.workers[w].late;
            self.put_into_lanes(world, w, rows);
            world.workers[w].reading = Reading::Looked {
                from: std::array::from_fn(|p| late.lower(p, from[p])),
                to: from,
                writers,
            };
            return;
        }
        world.workers[w].reading = Reading::Read { rows, writers };
    }

    /// The statement: what is pending between these ids and not in memory, by place.
    fn page(&self, world: &World, w: usize, p: usize, from: u8, to: u8) -> Vec<usize> {
        let worker = &world.workers[w];
        let seen = |r: &usize| {
            let record = if self.makes(Mistake::ReadsUncommitted) {
                world.db.records[*r]
            } else {
                world.db.visible(*r)
            };
            let id = id(&[*r]);
            let known = worker.memory[*r] != Place::Out && !self.makes(Mistake::FiltersOnArrival);
            record.is_some_and(|record| self.partition_of(record) == p && !record.completed)
                && !known
                && id > from
                && id <= to
        };
        let holds = worker.holds()[p];
        let all = (0..RECORDS).filter(|r| holds && seen(r));
        all.take(self.scenario.page).collect()
    }

    pub(super) fn arrive(&self, world: &mut World, w: usize) {
        let Reading::Read { rows, mut writers } = world.workers[w].reading else {
            return;
        };
        if self.makes(Mistake::WritersAfterReading) {
            let now = world.db.writers();
            let worker = &mut world.workers[w];
            let (holds, highest) = (worker.holds(), worker.highest());
            worker.late.observe(holds, highest, now);
            for p in 0..PARTITIONS {
                worker.late.page_read(p, 0, 0, true);
            }
            writers = now != 0;
        }
        let new = self.put_into_lanes(world, w, rows);
        world.workers[w].reading = Reading::Idle;
        self.looked_once_more(world, w, new, writers);
    }

    /// Whether there was something new.
    fn put_into_lanes(&self, world: &mut World, w: usize, rows: u8) -> bool {
        let mut new = false;
        for r in (0..RECORDS).filter(|r| rows & 1 << r != 0) {
            let Some(record) = world.db.records[r] else {
                continue;
            };
            let worker = &mut world.workers[w];
            let partition = self.scenario.partition(record.key);
            if !worker.holds()[partition] || worker.life != Life::Running {
                continue;
            }
            let held = &mut worker.leases[partition];
            held.after = held.after.max(id(&[r]));
            if worker.memory[r] == Place::Out {
                worker.memory[r] = Place::Waiting;
                new = true;
            }
        }
        new
    }
}

/// The highest id of these places; zero if there are none.
fn id(places: &[usize]) -> u8 {
    let highest = places.last().map_or(0, |place| place + 1);
    u8::try_from(highest).unwrap_or(u8::MAX)
}
