//! Takes the one next step of a lane, and grants slots.

use super::Lanes;
use crate::runtime::lane::{Burst, FetchPhase, ForgetList, NextStep};
use crate::{registry::HandlerIx, store::LaneName};

impl Lanes {
    /// Takes the one next step of a lane. Does nothing in a closing partition: all of it
    /// is forgotten before it is drained.
    pub(super) fn advance(&mut self, key: &str, handler: HandlerIx) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        let partition = entry.partition();
        let lane = entry.lane(handler);
        let Some(lane) = lane.filter(|_| !self.closing.contains(&partition)) else {
            return;
        };
        let state = &mut self.handlers[handler];
        let next = lane.next_step(state.is_available());
        match next {
            NextStep::Wait => {}
            NextStep::Run if state.try_take_slot() => {
                self.ready.extend(lane.start_burst(state.burst()));
            }
            NextStep::Run => {
                if let Some(first) = lane.await_slot() {
                    state.wait_for_slot(first);
                }
            }
            NextStep::Load => {
                lane.begin_loading();
                let (key, handler) = (key.to_owned(), state.settings().id.to_owned());
                self.to_load.push(LaneName {
                    partition,
                    key,
                    handler,
                });
            }
            NextStep::Block | NextStep::Forget => {
                if next == NextStep::Block {
                    lane.block();
                }
                // A fetch that is under way may have read rows of the lane, so it stays until then.
                if lane.had_rows()
                    && let FetchPhase::UnderWay { forget_after } = &mut self.fetch
                {
                    let list = ForgetList::of_lane(key, handler);
                    forget_after.push((self.generation, list));
                } else if entry.remove_if_forgettable(handler) {
                    self.keys.remove(key);
                }
            }
        }
    }

    /// Frees the slot of an invocation, and grants it to the next in line.
    pub(super) fn free_slot(&mut self, handler: HandlerIx) {
        self.handlers[handler].free_slot();
        self.grant_slots(handler);
    }

    /// Grants free slots to the deliveries and lanes that wait for one.
    pub(super) fn grant_slots(&mut self, handler: HandlerIx) {
        while let Some(first) = self.handlers[handler].take_slot_for_next() {
            let burst = if first.is_detached {
                let rest = Vec::new();
                Some(Burst { first, rest })
            } else {
                let max = self.handlers[handler].burst();
                let lane = self.lane(&first.record.key, handler);
                let lane = lane.filter(|lane| lane.is_awaiting_slot());
                lane.and_then(|lane| lane.start_burst(max))
            };
            match burst {
                Some(burst) => self.ready.push(burst),
                None => self.handlers[handler].free_slot(),
            }
        }
    }
}
