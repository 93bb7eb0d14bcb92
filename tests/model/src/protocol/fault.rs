//! What goes wrong. That a process stands still needs no step: others may take as many as they like
//! between two of its own. That its leases run out meanwhile does.

use super::Protocol;
use crate::{
    database::{Instance, Stage},
    mistake::Mistake,
    scenario::RECORDS,
    step::Step,
    worker::{Life, Reading, Worker},
    world::World,
};

impl Protocol {
    pub(super) fn fault_steps(&self, world: &World, steps: &mut Vec<Step>) {
        for w in self.workers() {
            let worker = &world.workers[w];
            let may_age = world.db.may_age(w);
            if worker.life == Life::Gone && may_age {
                steps.push(Step::Expire { w });
            }
            let Instance {
                row,
                session,
                quiet,
                ..
            } = world.db.instances[w];
            if self.scenario.grace && row && !session && !quiet {
                steps.push(Step::Quiet { w });
            }
            if !worker.lives() {
                continue;
            }
            if world.faults.expiries > 0 && may_age {
                steps.push(Step::Expire { w });
            }
            if world.faults.crashes > 0 {
                steps.push(Step::Crash { w, hangs: false });
                steps.push(Step::Crash { w, hangs: true });
            }
            if world.faults.sessions > 0 && world.db.instances[w].session {
                steps.push(Step::LoseSession { w });
            }
        }
        if world.faults.databases > 0 {
            steps.push(Step::DatabaseCrash { forgets: None });
            for r in 0..RECORDS {
                if world.db.records[r].is_some_and(|record| record.completed) {
                    let forgets = Some(r);
                    steps.push(Step::DatabaseCrash { forgets });
                }
            }
        }
    }

    /// What it had sent is executed all the same, or not. Its session ends with it, or hangs.
    pub(super) fn crash(&self, world: &mut World, w: usize, hangs: bool) {
        world.faults.crashes -= 1;
        world.history.unlucky[w] = true;
        world.db.instances[w].session = hangs;
        let Worker {
            writing, reading, ..
        } = world.workers[w];
        let sent = matches!(reading, Reading::Claiming { .. });
        world.workers[w] = Worker {
            life: Life::Gone,
            writing,
            reading: if sent { reading } else { Reading::Idle },
            ..Worker::default()
        };
    }

    /// The process counts from before it asked, so its own clock was first.
    pub(super) fn expire(&self, world: &mut World, w: usize) {
        if world.workers[w].lives() {
            world.faults.expiries -= 1;
        }
        world.history.unlucky[w] = true;
        world.db.expire(w);
        world.workers[w].lapse();
    }

    /// The process counts from its last sign of life on that connection, so it was first here too.
    pub(super) fn quiet(&self, world: &mut World, w: usize) {
        world.db.instances[w].quiet = true;
        world.workers[w].lapse();
    }

    pub(super) fn lose_session(&self, world: &mut World, w: usize) {
        world.faults.sessions -= 1;
        world.history.unlucky[w] = true;
        world.db.instances[w].session = false;
    }

    /// Open transactions and all sessions end; an acknowledgement may be forgotten, leases not.
    /// The next statement of each process fails, and it reads everything again.
    pub(super) fn database_crash(&self, world: &mut World, forgets: Option<usize>) {
        world.faults.databases -= 1;
        for transaction in &mut world.db.transactions {
            transaction.notifies = false;
            transaction.saw_listener = false;
            transaction.stage = match transaction.stage {
                Stage::Early | Stage::Open => Stage::RolledBack,
                Stage::Visible => Stage::Committed,
                over => over,
            };
        }
        if let Some(r) = forgets {
            world.history.started[r] = None;
            if let Some(record) = &mut world.db.records[r] {
                record.completed = false;
            }
        }
        if self.makes(Mistake::AsynchronousLeases) {
            world.db.leases = world.db.leases_before;
        }
        for w in self.workers() {
            world.history.unlucky[w] |= world.workers[w].lives();
            let instance = &mut world.db.instances[w];
            *instance = Instance {
                session: false,
                ..*instance
            };
            let worker = &mut world.workers[w];
            worker.reading = Reading::Idle;
            if worker.lives() && !self.makes(Mistake::NoSweepAfterOutage) {
                let holds = worker.holds();
                worker.late.reread(holds, 0);
            }
        }
    }
}
