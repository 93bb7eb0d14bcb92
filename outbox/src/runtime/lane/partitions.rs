//! The fourth door, from ownership: partitions close, open again, drain, or are lost.

use super::Lanes;
use crate::registry::HandlerIx;

impl Lanes {
    /// Nothing more is started in these partitions. What runs is finished; what does not run leaves
    /// memory, as the database knows it.
    pub(crate) fn close(&mut self, partitions: &[u16]) {
        self.closing.extend(partitions);
        let is_closing = |partition: u16| partitions.contains(&partition);
        for (name, key) in &mut self.keys {
            if !is_closing(key.partition()) {
                continue;
            }
            // A handler that has completed a record, or may any moment, must not run again because
            // another handler of the same record has not.
            if key.may_become_partly_done() {
                key.split(&self.handlers, &mut self.outgoing, &mut self.deliveries);
            }
            self.records
                .forget(&key.take_not_running(), self.generation);
            for lane in key.lanes_mut() {
                let handler = lane.handler();
                let mut has_left = false;
                for work in lane.drain_not_running() {
                    // Only what has a row is in memory as a delivery.
                    if self.deliveries.contains(&(work.record.id, handler)) {
                        self.outgoing.forget_delivery(work.record.id, handler);
                        has_left = true;
                    }
                }
                if has_left {
                    lane.closed();
                    self.outgoing.change_lane(name, handler);
                }
            }
        }
        for (handler, state) in self.handlers.iter_mut() {
            for work in state.take_waiting(is_closing) {
                // It is still due in the database.
                self.outgoing.forget_delivery(work.record.id, handler);
            }
        }
        self.to_load.retain(|lane| !is_closing(lane.part));
    }

    /// These partitions stay after all. The caller reads them, and all of their lanes, again.
    pub(crate) fn reopen(&mut self, partitions: &[u16]) {
        for partition in partitions {
            self.closing.remove(partition);
        }
        let mut lanes = Vec::new();
        for (name, key) in &mut self.keys {
            if !partitions.contains(&key.partition()) {
                continue;
            }
            for lane in key.lanes_mut() {
                lane.reopened();
                lanes.push((name.clone(), lane.handler()));
            }
        }
        for (name, handler) in lanes {
            self.advance(&name, handler);
        }
    }

    /// Closing partitions of which nothing runs or is to be written.
    pub(crate) fn drained(&self) -> Vec<u16> {
        let closing = self.closing.iter().copied();
        closing
            .filter(|partition| self.memory_of(*partition) == 0)
            .collect()
    }

    pub(crate) fn has_drained(&self) -> bool {
        !self.drained().is_empty()
    }

    pub(crate) fn closing_count(&self) -> usize {
        self.closing.len()
    }

    pub(crate) fn is_closing(&self, partition: u16) -> bool {
        self.closing.contains(&partition)
    }

    /// How many records and deliveries of a partition are in memory.
    pub(crate) fn memory_of(&self, partition: u16) -> usize {
        self.records.count(partition) + self.deliveries.count(partition)
    }

    /// These partitions belong to others now: everything about them is dropped. `cancelled`: the
    /// handlers of the invocations that the caller has cancelled, one entry per slot.
    pub(crate) fn drop_partitions(&mut self, lost: &[u16], cancelled: &[HandlerIx]) {
        let is_lost = |partition: u16| lost.contains(&partition);
        self.closing.retain(|partition| !is_lost(*partition));
        self.to_load.retain(|lane| !is_lost(lane.part));
        self.keys.retain(|_, key| !is_lost(key.partition()));
        self.generation.0 += 1;
        self.records.drop_partitions(lost);
        self.deliveries.drop_partitions(lost);
        self.outgoing
            .drop_partitions(lost, &self.records, &self.deliveries, &self.keys);
        for (_, state) in self.handlers.iter_mut() {
            state.take_waiting(is_lost);
        }
        let not_started = self.ready.extract_if(.., |burst| is_lost(burst.first.part));
        let mut freed: Vec<HandlerIx> = not_started.map(|burst| burst.first.handler).collect();
        freed.extend(cancelled);
        for handler in freed {
            self.free_slot(handler);
        }
    }

    /// Before everything is dropped: records that some of their handlers have completed get rows for
    /// the others, so that the completed ones do not run again.
    pub(crate) fn split_partly_done(&mut self) {
        let keys = self.keys.values_mut();
        for key in keys.filter(|key| key.has_partly_done()) {
            key.split(&self.handlers, &mut self.outgoing, &mut self.deliveries);
        }
    }
}
