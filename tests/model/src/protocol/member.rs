//! Ownership: joining, claiming, releasing, leaving, reaping.

use super::Protocol;
use crate::{
    database::Instance,
    mistake::Mistake,
    scenario::{PARTITIONS, RECORDS, WORKERS},
    step::Step,
    worker::{KnownLease, Life, Listening, Place, Reading, Worker},
    world::World,
};

impl Protocol {
    pub(super) fn member_steps(&self, world: &World, w: usize, steps: &mut Vec<Step>) {
        let worker = &world.workers[w];
        let instance = world.db.instances[w];
        let idle = worker.reading == Reading::Idle;
        if worker.life == Life::Unborn {
            steps.push(Step::Join { w });
        }
        if matches!(worker.reading, Reading::Claiming { .. }) {
            // Also of a process that has crashed since: it is on its way.
            steps.push(Step::Claim { w });
        }
        if matches!(worker.reading, Reading::Claimed { .. }) && worker.lives() {
            steps.push(Step::Claimed { w });
        }
        if worker.lives() && !instance.session {
            steps.push(Step::Reconnect { w });
        }
        if worker.life == Life::Leaving
            && idle
            && self.partitions().all(|p| !self.works(world, w, p))
        {
            steps.push(Step::Left { w });
        }
        if worker.life != Life::Running {
            return;
        }
        if world.leaves > 0 {
            steps.push(Step::Leave { w });
        }
        for dead in self.workers() {
            let Instance {
                row,
                session,
                quiet,
                ..
            } = world.db.instances[dead];
            if dead != w && row && !session && (quiet || !self.scenario.grace) {
                steps.push(if self.makes(Mistake::ReapsLater) {
                    Step::FindDead { w, dead }
                } else {
                    Step::Reap { w, dead }
                });
            }
        }
        if let Some(dead) = worker.reaping.map(usize::from) {
            steps.push(Step::Reap { w, dead });
        }
        // First the session, then the row, then the leases.
        let row = instance.row || self.makes(Mistake::ClaimsBeforeRow);
        let registered = row && instance.session || self.makes(Mistake::ClaimsWithoutSession);
        if idle && registered && (self.scenario.renews || self.claim_changes(world, w)) {
            steps.push(if self.scenario.snapshot {
                Step::BeginClaim { w }
            } else {
                Step::Claim { w }
            });
        }
        self.hand_over_steps(world, w, steps);
    }

    /// A process with more than its share releases the surplus.
    fn hand_over_steps(&self, world: &World, w: usize, steps: &mut Vec<Step>) {
        let worker = &world.workers[w];
        let held = worker.leases.iter().filter(|held| held.epoch > 0).count();
        let draining = worker.leases.iter().filter(|held| held.draining).count();
        let over = world.db.over_share(&self.scenario, self.mistake, held);
        for p in self.partitions() {
            let KnownLease {
                epoch,
                draining: is,
                ..
            } = worker.leases[p];
            if epoch > 0 && !is && draining.cast_signed() < over {
                steps.push(Step::Drain { w, p });
            }
            let may = !self.works(world, w, p) || self.makes(Mistake::ReleaseBeforeDrain);
            let refused = worker.leases[p].refused;
            let idle = match worker.reading {
                Reading::Idle => true,
                Reading::Claimed { .. } => self.makes(Mistake::ReleaseDuringClaim),
                Reading::Claiming { .. } | Reading::Looked { .. } | Reading::Read { .. } => false,
            };
            if is && may && !refused && idle {
                steps.push(Step::Release { w, p });
            }
        }
    }

    /// Something of this partition runs or is not written yet.
    fn works(&self, world: &World, w: usize, partition: usize) -> bool {
        let worker = &world.workers[w];
        let in_partition = self.in_partition(world, partition);
        (0..RECORDS).filter(|r| in_partition[*r]).any(|r| {
            let sent = worker.writing.is_some_and(|b| b.records & 1 << r != 0);
            sent || matches!(worker.memory[r], Place::Running | Place::Ran)
        })
    }

    /// Processes claim all the time. The model leaves out claims without an effect.
    fn claim_changes(&self, world: &World, w: usize) -> bool {
        let mut next = world.db;
        next.claim(w, self.rows(world), &self.scenario, self.mistake);
        let known = (0..PARTITIONS).all(|p| match world.workers[w].leases[p].epoch {
            0 => next.leases[p].owner.map(usize::from) != Some(w),
            epoch => next.owns(w, p, epoch),
        });
        !world.workers[w].valid || next != world.db || !known
    }

    pub(super) fn join(&self, world: &mut World, w: usize) {
        world.workers[w] = Worker::running();
        world.db.instances[w] = Instance {
            row: !self.makes(Mistake::ClaimsBeforeRow),
            session: true,
            ..Instance::default()
        };
    }

    /// Which processes had a row, where a claim looks at that.
    fn rows(&self, world: &World) -> Option<[bool; WORKERS]> {
        (!self.scenario.frees).then(|| world.db.rows())
    }

    pub(super) fn begin_claim(&self, world: &mut World, w: usize) {
        let rows = world.db.rows();
        world.workers[w].reading = Reading::Claiming { rows, valid: true };
    }

    pub(super) fn claim(&self, world: &mut World, w: usize) {
        let before = world.db;
        let (rows, valid) = match world.workers[w].reading {
            Reading::Claiming { rows, valid } => ((!self.scenario.frees).then_some(rows), valid),
            _ => (self.rows(world), true),
        };
        // The statement locks the row of its own process, so a process that was reaped takes nothing.
        let registered = world.db.instances[w].row
            || self.makes(Mistake::ClaimsBeforeRow)
            || self.makes(Mistake::ClaimsWithoutSession);
        let taken = if registered {
            world.db.claim(w, rows, &self.scenario, self.mistake)
        } else {
            [None; PARTITIONS]
        };
        let history = &mut world.history;
        for (p, from) in taken.into_iter().enumerate() {
            let Some(was_owned) = from else { continue };
            history.tenures[p] += 1;
            let owner = before.leases[p].owner.map_or(w, usize::from);
            if was_owned && history.unlucky[owner] {
                history.unclean[p] = true;
            }
        }
        let mut epochs = [0; PARTITIONS];
        for (p, lease) in world.db.leases.iter().enumerate() {
            if registered && lease.owner.map(usize::from) == Some(w) {
                epochs[p] = lease.epoch;
            }
        }
        let worker = &mut world.workers[w];
        worker.reading = if worker.lives() {
            Reading::Claimed {
                epochs,
                tenures: history.tenures,
                valid,
            }
        } else {
            Reading::Idle
        };
    }

    /// A partition with another epoch was lost in between, and is gained anew.
    pub(super) fn claimed(&self, world: &mut World, w: usize) {
        let Reading::Claimed {
            epochs,
            tenures,
            valid,
        } = world.workers[w].reading
        else {
            return;
        };
        if self.makes(Mistake::ClaimsBeforeRow) {
            world.db.instances[w].row = true;
        }
        for p in self.partitions() {
            let epoch = epochs[p];
            let lost = epoch == 0;
            if world.workers[w].leases[p].epoch == epoch
                || lost && self.makes(Mistake::RenewsBlindly)
            {
                continue;
            }
            let in_partition = self.in_partition(world, p);
            world.workers[w].drop_partition(p, in_partition);
            if epoch > 0 {
                world.workers[w].leases[p] = KnownLease {
                    epoch,
                    tenure: tenures[p],
                    ..KnownLease::default()
                };
                self.stop_listening(world, w);
            }
        }
        world.workers[w].valid = valid || self.makes(Mistake::CountsFromTheAnswer);
        world.workers[w].reading = Reading::Idle;
    }

    /// By one statement, which holds the session lock of the dead: it cannot come back meanwhile.
    pub(super) fn reap(&self, world: &mut World, w: usize, dead: usize) {
        let instance = &mut world.db.instances[dead];
        *instance = Instance {
            session: instance.session,
            ..Instance::default()
        };
        world.workers[w].reaping = None;
        for (p, lease) in world.db.leases.iter_mut().enumerate() {
            if self.scenario.frees && lease.owner.map(usize::from) == Some(dead) {
                (lease.owner, lease.expired) = (None, false);
                world.history.unclean[p] |= world.history.unlucky[dead];
            }
        }
    }

    pub(super) fn release(&self, world: &mut World, w: usize, p: usize) {
        let in_partition = self.in_partition(world, p);
        world.db.release(w, p, world.workers[w].leases[p].epoch);
        world.workers[w].drop_partition(p, in_partition);
    }

    pub(super) fn leave(&self, world: &mut World, w: usize) {
        world.leaves -= 1;
        self.stop_listening(world, w);
        let worker = &mut world.workers[w];
        worker.life = Life::Leaving;
        for place in &mut worker.memory {
            if *place == Place::Waiting {
                *place = Place::Out;
            }
        }
        if self.makes(Mistake::RowDeletedBeforeDrain) {
            world.db.instances[w].row = false;
        }
    }

    pub(super) fn left(&self, world: &mut World, w: usize) {
        for p in self.partitions() {
            self.release(world, w, p);
        }
        world.db.instances[w] = Instance::default();
        world.workers[w] = Worker {
            life: Life::Gone,
            ..Worker::default()
        };
    }

    /// Opens a new session, writes the row again if a peer has deleted it, and reads everything: the
    /// process missed all notifications meanwhile. It starts nothing before the answer to a claim
    /// that began after this, because a peer may own its partitions.
    pub(super) fn reconnect(&self, world: &mut World, w: usize) {
        let instance = &mut world.db.instances[w];
        (instance.row, instance.session, instance.quiet) = (true, true, false);
        if !self.makes(Mistake::ContinuesAfterReconnect) {
            world.workers[w].lapse();
        }
        if self.makes(Mistake::ListensWithoutLook) {
            instance.listening = world.workers[w].listening != Listening::Off;
            return;
        }
        self.stop_listening(world, w);
    }
}
