//! Inside: the one thing that a lane can do next, and who gets a slot.

use super::{
    burst::{Burst, Work},
    lane::NextStep,
    lanes::Lanes,
    outgoing::{FetchPhase, ForgetList, LaneRef},
    slots::NextForSlot,
};
use crate::{registry::HandlerIx, store::LaneName};

impl Lanes {
    /// Does the one thing that a lane can do next. Nothing in a closing partition, of which
    /// everything is forgotten before it is drained.
    pub(super) fn advance(&mut self, key: &str, handler: HandlerIx) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        let partition = entry.partition();
        let Some(lane) = entry.lane(handler) else {
            return;
        };
        if self.closing.contains(&partition) {
            return;
        }
        let state = &mut self.handlers[handler];
        match lane.next_step(state.is_available()) {
            NextStep::Wait => {}
            NextStep::Run => {
                let slots = state.slots_mut();
                if slots.try_take() {
                    self.ready
                        .extend(lane.start_burst(partition, slots.burst()));
                } else if let Some(first) = lane.await_slot() {
                    slots.wait(first);
                }
            }
            NextStep::Load => {
                lane.begin_loading();
                self.to_load.push(LaneName {
                    part: partition,
                    key: key.to_owned(),
                    handler: state.id().to_owned(),
                });
            }
            NextStep::Block => {
                lane.block();
                self.forget_lane(key, handler);
            }
            NextStep::Forget => self.forget_lane(key, handler),
        }
    }

    /// A lane of which nothing is in memory is forgotten: at once, or when the fetch that is under
    /// way, and may have seen rows of the lane, has ended.
    fn forget_lane(&mut self, key: &str, handler: HandlerIx) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        let had_rows = entry.lane(handler).is_some_and(|lane| lane.had_rows());
        if had_rows && let FetchPhase::UnderWay { forget_after } = &mut self.fetch {
            let key = key.into();
            let list = ForgetList::of_lane(LaneRef { key, handler });
            forget_after.push((self.memory.generation(), list));
        } else if entry.remove_if_forgettable(handler) {
            self.keys.remove(key);
        }
    }

    /// A delivery outside its lane runs as soon as there is a slot.
    pub(super) fn start_detached(&mut self, work: Work) {
        let handler = work.handler;
        self.handlers[handler].slots_mut().wait_detached(work);
        self.grant_slots(handler);
    }

    /// An invocation gives its slot back, and the next gets it.
    pub(super) fn free_slot(&mut self, handler: HandlerIx) {
        self.handlers[handler].slots_mut().free();
        self.grant_slots(handler);
    }

    /// Grants free slots to those that wait for one.
    fn grant_slots(&mut self, handler: HandlerIx) {
        while let Some(next) = self.handlers[handler].slots_mut().next() {
            let burst = match next {
                NextForSlot::Detached(first) => {
                    let rest = Vec::new();
                    Some(Burst { first, rest })
                }
                NextForSlot::Lane(first) => self.start_waiting(&first.key, handler),
            };
            match burst {
                Some(burst) => self.ready.push(burst),
                None => self.handlers[handler].slots_mut().free(),
            }
        }
    }

    /// The burst of a lane that waited for its slot.
    fn start_waiting(&mut self, key: &str, handler: HandlerIx) -> Option<Burst> {
        let max = self.handlers[handler].slots().burst();
        let entry = self.keys.get_mut(key)?;
        let partition = entry.partition();
        let lane = entry.lane(handler)?;
        if lane.is_awaiting_slot() {
            lane.start_burst(partition, max)
        } else {
            None
        }
    }
}
