//! Going to sleep: say so, look once more, and only then wait for a notification.

use super::Protocol;
use crate::{
    mistake::Mistake,
    step::Step,
    worker::{Life, Place, Reading, Sleep},
    world::World,
};

impl Protocol {
    pub(super) fn sleep_steps(&self, world: &World, w: usize, steps: &mut Vec<Step>) {
        let worker = &world.workers[w];
        if !self.scenario.sleep {
            return;
        }
        if worker.taking_flag_down {
            steps.push(Step::TakeFlagDown { w });
        }
        if worker.life != Life::Running || worker.reading != Reading::Idle {
            return;
        }
        match worker.sleep {
            Sleep::Awake => {
                let nothing = worker.memory.iter().all(|place| *place == Place::Out);
                let there = world.db.instances[w].row && world.db.instances[w].session;
                if nothing && worker.writing.is_none() && worker.valid && there {
                    steps.push(Step::Flag { w });
                }
            }
            Sleep::Asleep if worker.notified => steps.push(Step::Wake { w }),
            Sleep::Asleep | Sleep::Flagged | Sleep::Woken => {}
        }
    }

    pub(super) fn flag(&self, world: &mut World, w: usize) {
        world.workers[w].sleep = Sleep::Flagged;
        if !self.makes(Mistake::FlagAfterLastLook) {
            world.db.instances[w].asleep = true;
        }
    }

    pub(super) fn wake(&self, world: &mut World, w: usize) {
        world.workers[w].notified = false;
        match self.scenario.nap {
            true => world.workers[w].sleep = Sleep::Woken,
            false => self.stay_awake(world, w),
        }
    }

    /// A fetch has ended; was it the last look?
    pub(super) fn looked_once_more(&self, world: &mut World, w: usize, new: bool, writers: bool) {
        let worker = &mut world.workers[w];
        let ignores = self.makes(Mistake::SleepsDespiteWriters);
        let nothing = match worker.sleep {
            Sleep::Awake | Sleep::Asleep => return,
            Sleep::Flagged => !new && (ignores || !writers && !worker.late.possible()),
            // Whoever wrote since then has seen the flag.
            Sleep::Woken => !new,
        };
        if !nothing {
            self.stay_awake(world, w);
            return;
        }
        worker.sleep = Sleep::Asleep;
        if self.makes(Mistake::FlagAfterLastLook) {
            world.db.instances[w].asleep = true;
        }
    }

    pub(super) fn stay_awake(&self, world: &mut World, w: usize) {
        let was = std::mem::take(&mut world.workers[w].sleep);
        if was == Sleep::Awake {
            return;
        }
        match self.makes(Mistake::TakesFlagDownLater) {
            true => world.workers[w].taking_flag_down = true,
            false => world.db.instances[w].asleep = false,
        }
    }

    pub(super) fn flag_down(&self, world: &mut World, w: usize) {
        world.workers[w].taking_flag_down = false;
        world.db.instances[w].asleep = false;
    }
}
