//! Handling: a handler is started and returns, and later that is written, conditional on the lease.

use super::Protocol;
use crate::{
    database::{Record, Stage},
    mistake::Mistake,
    property::Property,
    scenario::{PARTITIONS, RECORDS},
    step::Step,
    worker::{Batch, KnownLease, Life, Place},
    world::World,
};

impl Protocol {
    pub(super) fn handle_steps(&self, world: &World, w: usize, steps: &mut Vec<Step>) {
        let worker = &world.workers[w];
        if worker.writing.is_some() {
            // Also of a process that has crashed since: it is on its way.
            let checked = worker.writing.is_some_and(|batch| batch.passed.is_some());
            steps.push(if checked || !self.scenario.unlocked {
                Step::Write { w }
            } else {
                Step::Check { w }
            });
        }
        if !worker.lives() {
            return;
        }
        for r in 0..RECORDS {
            match worker.memory[r] {
                Place::Waiting if self.may_start(world, w, r) => steps.push(Step::Start { w, r }),
                Place::Running => steps.push(Step::Return { w, r }),
                Place::Waiting | Place::Ran | Place::Out => {}
            }
        }
        if worker.writing.is_none() && self.unwritten(world, w) != 0 {
            steps.push(Step::Send { w });
        }
    }

    fn unwritten(&self, world: &World, w: usize) -> u8 {
        let early = self.makes(Mistake::CompletesAtStart);
        let memory = world.workers[w].memory.iter().enumerate();
        memory
            .filter(|(_, place)| match place {
                Place::Ran => true,
                Place::Running => early,
                Place::Out | Place::Waiting => false,
            })
            .map(|(r, _)| 1 << r)
            .sum()
    }

    fn may_start(&self, world: &World, w: usize, r: usize) -> bool {
        let worker = &world.workers[w];
        let Some(Record { key, .. }) = world.db.records[r] else {
            return false;
        };
        let held = worker.leases[self.scenario.partition(key)];
        let in_time = worker.valid || self.makes(Mistake::StartsAfterExpiry);
        // The lane: one at a time, and the lowest id first.
        let first = (0..RECORDS).all(|other| {
            let same = world.db.records[other].is_some_and(|record| record.key == key);
            !same
                || match worker.memory[other] {
                    Place::Running => other > r && self.makes(Mistake::TwoOfALane),
                    Place::Waiting => other >= r,
                    Place::Out | Place::Ran => true,
                }
        });
        let open = held.epoch > 0 && !held.draining && !held.refused;
        worker.life == Life::Running && in_time && open && first
    }

    pub(super) fn start(&self, world: &mut World, w: usize, r: usize) -> Result<(), Property> {
        let Some(record) = world.db.records[r] else {
            return Ok(());
        };
        let p = self.partition_of(record);
        let tenure = world.workers[w].leases[p].tenure;
        let history = &mut world.history;
        if world.db.stage(record) == Stage::RolledBack {
            return Err(Property::RolledBack);
        }
        let same_key = |other: usize| {
            let of = world.db.records[other].filter(|of| of.key == record.key);
            of.is_some() && other != r
        };
        let earlier = (0..r).filter(|before| same_key(*before));
        let mut earlier = earlier.filter(|before| world.db.visible(*before).is_some());
        if earlier.any(|before| !history.handled[before]) {
            return Err(Property::Order);
        }
        let deaf = !world.db.instances[w].session;
        if tenure != history.tenures[p] && (self.strict || !deaf) {
            return Err(if deaf {
                Property::OwnerAlways
            } else {
                Property::Owner
            });
        }
        let again = history.started[r];
        if again.is_some_and(|before| before == tenure || !history.unclean[p]) {
            return Err(Property::Duplicate);
        }
        let runs = |other: usize| {
            let running = |worker: &crate::worker::Worker| {
                worker.lives() && worker.memory[other] == Place::Running
            };
            (other == r || same_key(other)) && world.workers.iter().any(running)
        };
        if !history.unclean[p] && (0..RECORDS).any(runs) {
            return Err(Property::Overlap);
        }
        history.started[r] = Some(tenure);
        world.workers[w].memory[r] = Place::Running;
        if self.scenario.instant {
            self.returned(world, w, r);
            self.send(world, w);
            self.write(world, w)?;
        }
        Ok(())
    }

    pub(super) fn returned(&self, world: &mut World, w: usize, r: usize) {
        world.history.handled[r] = true;
        world.workers[w].memory[r] = Place::Ran;
    }

    /// Whatever is finished is the next batch, with the leases as they are known now.
    pub(super) fn send(&self, world: &mut World, w: usize) {
        let records = self.unwritten(world, w);
        let worker = &mut world.workers[w];
        worker.writing = Some(Batch {
            records,
            epochs: worker.leases.map(|held| held.epoch),
            tenures: worker.leases.map(|held| held.tenure),
            passed: None,
        });
    }

    pub(super) fn check(&self, world: &mut World, w: usize) {
        let db = world.db;
        if let Some(batch) = &mut world.workers[w].writing {
            batch.passed = Some(std::array::from_fn(|p| db.owns(w, p, batch.epochs[p])));
        }
    }

    pub(super) fn write(&self, world: &mut World, w: usize) -> Result<(), Property> {
        let Some(batch) = world.workers[w].writing.take() else {
            return Ok(());
        };
        let mut refused = [false; PARTITIONS];
        for r in (0..RECORDS).filter(|r| batch.records & 1 << r != 0) {
            let Some(record) = world.db.records[r] else {
                continue;
            };
            let p = self.partition_of(record);
            let owner = world.db.leases[p].owner.map(usize::from) == Some(w);
            let accepted = match (self.mistake, batch.passed) {
                (Some(Mistake::NoFence), _) => true,
                (Some(Mistake::FenceWithoutEpoch), _) => owner,
                (_, Some(passed)) => passed[p],
                (_, None) => world.db.owns(w, p, batch.epochs[p]),
            };
            if accepted && !record.completed {
                if !world.history.handled[r] {
                    return Err(Property::CompletedUnhandled);
                }
                let in_time = batch.passed.is_some();
                if batch.tenures[p] != world.history.tenures[p] && !in_time {
                    return Err(Property::Fence);
                }
                let completed = true;
                world.db.records[r] = Some(Record {
                    completed,
                    ..record
                });
            }
            // What was read in a later epoch is another matter.
            let same = world.workers[w].leases[p].epoch == batch.epochs[p];
            if !accepted && same && !self.makes(Mistake::IgnoresRefusal) {
                refused[p] = true;
            }
            let worker = &mut world.workers[w];
            let mine = same || self.makes(Mistake::ForgetsByOldBatch);
            if mine && worker.memory[r] == Place::Ran {
                worker.memory[r] = Place::Out;
            }
        }
        // Somebody else has it: whatever the clock says, and before anything is read again.
        for p in self.partitions().filter(|p| refused[*p]) {
            let in_partition = self.in_partition(world, p);
            if self.makes(Mistake::ForgetsRefusal) {
                world.workers[w].leases[p] = KnownLease::default();
            } else {
                world.workers[w].leases[p].refused = true;
            }
            world.workers[w].forget(in_partition);
        }
        Ok(())
    }
}
