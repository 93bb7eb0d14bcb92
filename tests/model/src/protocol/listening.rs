//! Listening instead of polling: set the flag, read once more, and only then wait for a
//! notification.

use super::Protocol;
use crate::{
    mistake::Mistake,
    step::Step,
    worker::{Life, Listening, Place, Reading},
    world::World,
};

impl Protocol {
    pub(super) fn listening_steps(&self, world: &World, w: usize, steps: &mut Vec<Step>) {
        let worker = &world.workers[w];
        if !self.scenario.listens {
            return;
        }
        if worker.taking_flag_down {
            steps.push(Step::TakeFlagDown { w });
        }
        if worker.life != Life::Running || worker.reading != Reading::Idle {
            return;
        }
        match worker.listening {
            Listening::Off => {
                let nothing = worker.memory.iter().all(|place| *place == Place::Out);
                let is_registered = world.db.instances[w].row && world.db.instances[w].session;
                if nothing && worker.writing.is_none() && worker.valid && is_registered {
                    steps.push(Step::Flag { w });
                }
            }
            Listening::On if worker.notified => steps.push(Step::Wake { w }),
            Listening::On | Listening::Announced | Listening::Notified => {}
        }
    }

    pub(super) fn flag(&self, world: &mut World, w: usize) {
        world.workers[w].listening = Listening::Announced;
        if !self.makes(Mistake::FlagAfterLastLook) {
            world.db.instances[w].listening = true;
        }
    }

    pub(super) fn wake(&self, world: &mut World, w: usize) {
        world.workers[w].notified = false;
        if self.scenario.keeps_flag {
            world.workers[w].listening = Listening::Notified;
        } else {
            self.stop_listening(world, w);
        }
    }

    /// A fetch has ended. If it was the last one before listening, decides whether to listen.
    pub(super) fn looked_once_more(&self, world: &mut World, w: usize, new: bool, writers: bool) {
        let worker = &mut world.workers[w];
        let ignores = self.makes(Mistake::ListensDespiteWriters);
        let nothing = match worker.listening {
            Listening::Off | Listening::On => return,
            Listening::Announced => !new && (ignores || !writers && !worker.late.expects_late()),
            // Every publisher since then has seen the flag.
            Listening::Notified => !new,
        };
        if !nothing {
            self.stop_listening(world, w);
            return;
        }
        worker.listening = Listening::On;
        if self.makes(Mistake::FlagAfterLastLook) {
            world.db.instances[w].listening = true;
        }
    }

    pub(super) fn stop_listening(&self, world: &mut World, w: usize) {
        let was = std::mem::take(&mut world.workers[w].listening);
        if was == Listening::Off {
            return;
        }
        if self.makes(Mistake::TakesFlagDownLater) {
            world.workers[w].taking_flag_down = true;
        } else {
            world.db.instances[w].listening = false;
        }
    }

    pub(super) fn flag_down(&self, world: &mut World, w: usize) {
        world.workers[w].taking_flag_down = false;
        world.db.instances[w].listening = false;
    }
}
