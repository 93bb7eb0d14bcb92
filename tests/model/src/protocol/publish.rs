//! Publishing: a transaction locks the table, draws ids, and ends one way or the other.

use super::Protocol;
use crate::{
    database::{Record, Stage},
    mistake::Mistake,
    property::Property,
    scenario::RECORDS,
    step::Step,
    world::World,
};

impl Protocol {
    pub(super) fn publish_steps(&self, world: &World, steps: &mut Vec<Step>) {
        for (t, keys) in self.scenario.transactions.iter().enumerate() {
            let transaction = world.db.transactions[t];
            match transaction.stage {
                Stage::Ahead if self.makes(Mistake::FlagOfAnOldSnapshot) => {
                    steps.push(Step::Snapshot { t });
                }
                Stage::Ahead | Stage::Early => steps.push(Step::Begin { t }),
                Stage::Open => {
                    match keys.get(usize::from(transaction.written)) {
                        Some(&key) if !key_is_locked(world, t, key) => {
                            steps.push(Step::Insert { t });
                        }
                        Some(_) => {}
                        None => steps.push(Step::Commit { t }),
                    }
                    if self.scenario.rollbacks && transaction.written > 0 {
                        steps.push(Step::RollBack { t });
                    }
                }
                Stage::Visible => steps.push(Step::End { t }),
                Stage::Committed | Stage::RolledBack => {}
            }
        }
    }

    pub(super) fn snapshot(&self, world: &mut World, t: usize) {
        let has_listener = world.db.has_listener();
        let transaction = &mut world.db.transactions[t];
        transaction.stage = Stage::Early;
        transaction.saw_listener = has_listener;
    }

    pub(super) fn begin(&self, world: &mut World, t: usize) {
        world.db.transactions[t].stage = Stage::Open;
    }

    pub(super) fn insert(&self, world: &mut World, t: usize) {
        let place = world.db.records.iter().position(Option::is_none);
        let has_listener = if self.makes(Mistake::FlagOfAnOldSnapshot) {
            world.db.transactions[t].saw_listener
        } else {
            world.db.has_listener()
        };
        let transaction = &mut world.db.transactions[t];
        let keys = self.scenario.transactions[t];
        let record = Record {
            transaction: u8::try_from(t).unwrap_or(u8::MAX),
            key: keys[usize::from(transaction.written)],
            completed: false,
        };
        transaction.written += 1;
        if let Some(place) = place {
            world.db.records[place] = Some(record);
        }
        if !self.makes(Mistake::WakesBeforeCommit) {
            world.db.transactions[t].notifies |= has_listener;
        } else if has_listener {
            notify(world);
        }
    }

    pub(super) fn commit(&self, world: &mut World, t: usize) {
        world.db.transactions[t].stage = Stage::Visible;
    }

    /// The rest of a commit: in PostgreSQL rows can be seen before locks are released and
    /// listeners are notified.
    pub(super) fn end(&self, world: &mut World, t: usize) {
        let transaction = &mut world.db.transactions[t];
        transaction.stage = Stage::Committed;
        transaction.saw_listener = false;
        if std::mem::take(&mut transaction.notifies) {
            notify(world);
        }
    }

    pub(super) fn roll_back(&self, world: &mut World, t: usize) -> Result<(), Property> {
        let transaction = &mut world.db.transactions[t];
        transaction.stage = Stage::RolledBack;
        (transaction.notifies, transaction.saw_listener) = (false, false);
        let of_this =
            |r: &usize| world.db.records[*r].is_some_and(|rec| usize::from(rec.transaction) == t);
        let was_started = |r: usize| world.history.started[r].is_some();
        if (0..RECORDS).filter(of_this).any(was_started) {
            return Err(Property::RolledBack);
        }
        Ok(())
    }
}

/// Writers of one key are serialised, as by the row lock of an aggregate, which is released with
/// all others.
fn key_is_locked(world: &World, t: usize, key: u8) -> bool {
    world.db.records.iter().flatten().any(|record| {
        let open = matches!(world.db.stage(*record), Stage::Open | Stage::Visible);
        record.key == key && usize::from(record.transaction) != t && open
    })
}

/// Notifies every process that has a session. A broken connection receives nothing.
fn notify(world: &mut World) {
    for (worker, instance) in world.workers.iter_mut().zip(world.db.instances) {
        worker.notified |= worker.lives() && instance.session;
    }
}
