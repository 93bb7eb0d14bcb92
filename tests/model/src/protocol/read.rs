//! Reading: the writers first, then the records, then into the lanes.

use super::Protocol;
use crate::{
    mistake::Mistake,
    scenario::{PARTS, RECORDS},
    step::Step,
    worker::{Life, Place, Reading, Sleep},
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
                let wants = match worker.sleep {
                    Sleep::Awake => worker.holds().contains(&true),
                    Sleep::Flagged | Sleep::Woken => true,
                    Sleep::Asleep => false,
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
        if worker.sleep == Sleep::Awake {
            worker.notified = false;
        }
        if !self.makes(Mistake::WritersAfterReading) {
            let (holds, highest) = (worker.holds(), worker.highest());
            worker.late.look(holds, highest, writers);
        }
        let mut from = worker.held.map(|held| held.after);
        if !self.makes(Mistake::NoRescan) && !self.makes(Mistake::LateInAnotherStatement) {
            for (p, from) in from.iter_mut().enumerate() {
                *from = worker.late.lowered(p, *from);
            }
        }
        worker.reading = Reading::Looked {
            from,
            to: [u8::MAX; PARTS],
            writers: writers != 0,
        };
    }

    pub(super) fn read(&self, world: &mut World, w: usize) {
        let Reading::Looked { from, to, writers } = world.workers[w].reading else {
            return;
        };
        let first_of_two = self.makes(Mistake::LateInAnotherStatement) && to == [u8::MAX; PARTS];
        let mut rows = 0;
        for p in self.parts() {
            let of_page = self.page(world, w, p, from[p], to[p]);
            let bits: u8 = of_page.iter().map(|r| 1 << r).sum();
            rows |= bits;
            let worker = &mut world.workers[w];
            let counts = !self.makes(Mistake::WritersAfterReading) && !first_of_two;
            if worker.holds()[p] && counts {
                let all = of_page.len() < self.scenario.page;
                worker.late.read(p, worker.held[p].after, id(&of_page), all);
            }
        }
        if first_of_two {
            // Now those that came late, up to where this began.
            let late = world.workers[w].late;
            self.put_into_lanes(world, w, rows);
            world.workers[w].reading = Reading::Looked {
                from: std::array::from_fn(|p| late.lowered(p, from[p])),
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
            let record = match self.makes(Mistake::ReadsUncommitted) {
                true => world.db.records[*r],
                false => world.db.visible(*r),
            };
            let id = id(&[*r]);
            let known = worker.memory[*r] != Place::Out && !self.makes(Mistake::FiltersOnArrival);
            record.is_some_and(|record| self.part_of(record) == p && !record.completed)
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
            worker.late.look(holds, highest, now);
            for p in 0..PARTS {
                worker.late.read(p, 0, 0, true);
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
            let part = self.scenario.part(record.key);
            if !worker.holds()[part] || worker.life != Life::Running {
                continue;
            }
            let held = &mut worker.held[part];
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
