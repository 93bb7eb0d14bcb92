//! The protocol as a model: which steps there are, and what each does. One file for each of its
//! concerns.

mod fault;
mod handle;
mod listening;
mod member;
mod publish;
mod read;

use crate::{
    database::{Instance, Record},
    explore::Model,
    mistake::Mistake,
    property::Property,
    scenario::{PARTITIONS, RECORDS, Scenario, WORKERS},
    step::Step,
    worker::{Life, Listening, Worker},
    world::{History, World},
};

/// The protocol at some size, right or with a mistake.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// How much of everything.
    pub scenario: Scenario,
    /// What is done wrong, if anything.
    pub mistake: Option<Mistake>,
    /// Checks [`Property::OwnerAlways`] too.
    pub strict: bool,
}

impl Protocol {
    /// As it is to be.
    #[must_use]
    pub const fn right(scenario: Scenario) -> Self {
        Self {
            scenario,
            mistake: None,
            strict: false,
        }
    }

    /// With a mistake.
    #[must_use]
    pub const fn wrong(scenario: Scenario, mistake: Mistake) -> Self {
        Self {
            scenario,
            mistake: Some(mistake),
            strict: false,
        }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn workers(&self) -> std::ops::Range<usize> {
        0..self.scenario.workers
    }

    fn partitions(&self) -> std::ops::Range<usize> {
        0..self.scenario.partitions
    }

    fn partition_of(&self, record: Record) -> usize {
        self.scenario.partition(record.key)
    }

    /// Which records are in this partition.
    fn in_partition(&self, world: &World, partition: usize) -> [bool; RECORDS] {
        let records = world.db.records;
        records.map(|record| record.is_some_and(|record| self.partition_of(record) == partition))
    }
}

impl Model for Protocol {
    type State = World;
    type Step = Step;
    type Property = Property;

    fn initial(&self) -> World {
        let mut workers = [Worker::default(); WORKERS];
        let mut world = World {
            db: crate::database::Database::default(),
            workers,
            faults: self.scenario.faults,
            leaves: self.scenario.leaves,
            history: History::default(),
        };
        for (w, worker) in workers.iter_mut().enumerate().take(self.scenario.running) {
            *worker = Worker::running();
            world.db.instances[w] = Instance {
                row: true,
                session: true,
                ..Instance::default()
            };
        }
        world.workers = workers;
        for t in 0..self.scenario.committed {
            self.begin(&mut world, t);
            for _ in self.scenario.transactions[t] {
                self.insert(&mut world, t);
            }
            self.commit(&mut world, t);
            self.end(&mut world, t);
        }
        world
    }

    fn steps(&self, world: &World, steps: &mut Vec<Step>) {
        self.publish_steps(world, steps);
        for w in self.workers() {
            self.member_steps(world, w, steps);
            self.read_steps(world, w, steps);
            self.handle_steps(world, w, steps);
            self.listening_steps(world, w, steps);
        }
        self.fault_steps(world, steps);
    }

    fn apply(&self, world: &World, step: Step) -> Result<World, Property> {
        let mut next = *world;
        match step {
            Step::Snapshot { t } => self.snapshot(&mut next, t),
            Step::Begin { t } => self.begin(&mut next, t),
            Step::Insert { t } => self.insert(&mut next, t),
            Step::Commit { t } => self.commit(&mut next, t),
            Step::End { t } => self.end(&mut next, t),
            Step::RollBack { t } => self.roll_back(&mut next, t)?,
            Step::Join { w } => self.join(&mut next, w),
            Step::BeginClaim { w } => self.begin_claim(&mut next, w),
            Step::Claim { w } => self.claim(&mut next, w),
            Step::Claimed { w } => self.claimed(&mut next, w),
            Step::Drain { w, p } => next.workers[w].leases[p].draining = true,
            Step::Release { w, p } => self.release(&mut next, w, p),
            Step::Leave { w } => self.leave(&mut next, w),
            Step::Left { w } => self.left(&mut next, w),
            Step::FindDead { w, dead } => next.workers[w].reaping = u8::try_from(dead).ok(),
            Step::Reap { w, dead } => self.reap(&mut next, w, dead),
            Step::Reconnect { w } => self.reconnect(&mut next, w),
            Step::Look { w } => self.look(&mut next, w),
            Step::Read { w } => self.read(&mut next, w),
            Step::Arrive { w } => self.arrive(&mut next, w),
            Step::Start { w, r } => self.start(&mut next, w, r)?,
            Step::Return { w, r } => self.returned(&mut next, w, r),
            Step::Send { w } => self.send(&mut next, w),
            Step::Check { w } => self.check(&mut next, w),
            Step::Write { w } => self.write(&mut next, w)?,
            Step::Flag { w } => self.flag(&mut next, w),
            Step::Wake { w } => self.wake(&mut next, w),
            Step::TakeFlagDown { w } => self.flag_down(&mut next, w),
            Step::Crash { w, hangs } => self.crash(&mut next, w, hangs),
            Step::Expire { w } => self.expire(&mut next, w),
            Step::LoseSession { w } => self.lose_session(&mut next, w),
            Step::Quiet { w } => self.quiet(&mut next, w),
            Step::DatabaseCrash { forgets } => self.database_crash(&mut next, forgets),
        }
        Ok(next)
    }

    fn wrong(&self, world: &World) -> Option<Property> {
        let believers = |p: usize, epoch: u8| {
            let believes = |w: &&Worker| w.lives() && w.valid && w.leases[p].epoch == epoch;
            world.workers.iter().filter(believes).count()
        };
        for p in 0..PARTITIONS {
            let held = world.workers.iter().map(|w| w.leases[p].epoch);
            if held.into_iter().any(|e| e > 0 && believers(p, e) > 1) {
                return Some(Property::OneBeliever);
            }
        }
        self.lost_wake_up(world).then_some(Property::LostWakeUp)
    }

    fn is_done(&self, world: &World) -> bool {
        let done = |r| world.db.visible(r).is_none_or(|record| record.completed);
        // Where nobody runs, nothing can be expected.
        let nobody = world.workers.iter().all(|w| w.life != Life::Running);
        nobody || (0..RECORDS).all(done)
    }

    fn is_fair(&self, world: &World, step: Step) -> bool {
        match step {
            Step::Snapshot { .. }
            | Step::Begin { .. }
            | Step::Insert { .. }
            | Step::Commit { .. }
            | Step::RollBack { .. }
            | Step::Join { .. }
            | Step::Leave { .. }
            | Step::Crash { .. }
            | Step::LoseSession { .. }
            | Step::DatabaseCrash { .. } => false,
            // Of a process that is gone, time alone does it.
            Step::Expire { w } => world.workers[w].life == Life::Gone,
            _ => true,
        }
    }

    fn progress(&self) -> Property {
        Property::Lost
    }
}

impl Protocol {
    /// See [`Property::LostWakeUp`].
    fn lost_wake_up(&self, world: &World) -> bool {
        let on_its_way = world
            .db
            .transactions
            .iter()
            .any(|t| t.stage == crate::database::Stage::Visible && t.notifies);
        let to_do = |w: usize, r: usize| {
            let record = world.db.visible(r).filter(|record| !record.completed);
            record.is_some_and(|record| {
                let p = self.partition_of(record);
                world.db.owns(w, p, world.workers[w].leases[p].epoch)
            })
        };
        self.workers().any(|w| {
            let worker = &world.workers[w];
            let waits = worker.life == Life::Running && worker.listening == Listening::On;
            // Whose connection is broken will find out, and look.
            let listens = world.db.instances[w].session;
            let deaf = !worker.notified && !on_its_way;
            waits && listens && deaf && (0..RECORDS).any(|r| to_do(w, r))
        })
    }
}
