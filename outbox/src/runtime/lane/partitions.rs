//! The fourth input, from ownership: partitions close, open again, drain, or are lost.

use super::Lanes;
use crate::{record::Partition, registry::HandlerIx};

impl Lanes {
    /// Starts nothing more in these partitions. Running records finish. The others leave memory,
    /// because the database has them.
    pub(crate) fn close(&mut self, partitions: &[Partition]) {
        self.closing.extend(partitions);
        let is_closing = |partition: Partition| partitions.contains(&partition);
        for (name, key) in &mut self.keys {
            if !is_closing(key.partition()) {
                continue;
            }
            // A handler that has completed a record, or may do so at any moment, must not run again
            // because another handler of the same record has not.
            if key.may_become_partly_done() {
                key.split(&self.handlers, &mut self.outgoing, &mut self.deliveries);
            }
            self.records
                .forget(&key.take_not_running(), self.generation);
            for lane in key.lanes_mut() {
                let handler = lane.handler();
                let mut has_forgotten = false;
                for work in lane.drain_not_running() {
                    // Only a record with a row is in memory as a delivery.
                    if self.deliveries.contains(&(work.record.id, handler)) {
                        self.outgoing.forget_delivery(work.record.id, handler);
                        has_forgotten = true;
                    }
                }
                if has_forgotten {
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
        self.to_load.retain(|lane| !is_closing(lane.partition));
    }

    /// Opens closing partitions again. The caller reads them, and all of their lanes, again.
    pub(crate) fn reopen(&mut self, partitions: &[Partition]) {
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

    /// Closing partitions in which nothing runs and of which nothing is to be written.
    pub(crate) fn drained(&self) -> Vec<Partition> {
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

    pub(crate) fn is_closing(&self, partition: Partition) -> bool {
        self.closing.contains(&partition)
    }

    /// How many records and deliveries of a partition are in memory.
    pub(crate) fn memory_of(&self, partition: Partition) -> usize {
        self.records.count(partition) + self.deliveries.count(partition)
    }

    /// Forgets everything about partitions that other processes may own. `cancelled`: the handlers
    /// of the invocations that the caller has cancelled, one entry per slot.
    pub(crate) fn drop_partitions(&mut self, lost: &[Partition], cancelled: &[HandlerIx]) {
        let is_lost = |partition: Partition| lost.contains(&partition);
        self.closing.retain(|partition| !is_lost(*partition));
        self.to_load.retain(|lane| !is_lost(lane.partition));
        self.keys.retain(|_, key| !is_lost(key.partition()));
        self.generation.0 += 1;
        self.records.drop_partitions(lost);
        self.deliveries.drop_partitions(lost);
        self.outgoing
            .drop_partitions(lost, &self.records, &self.deliveries, &self.keys);
        for (_, state) in self.handlers.iter_mut() {
            state.take_waiting(is_lost);
        }
        let not_started = self
            .ready
            .extract_if(.., |burst| is_lost(burst.first.partition));
        let mut freed: Vec<HandlerIx> = not_started.map(|burst| burst.first.handler).collect();
        freed.extend(cancelled);
        for handler in freed {
            self.free_slot(handler);
        }
    }

    /// Call this before memory is dropped. A record that some of its handlers have completed gets
    /// rows for its other handlers, so that the former do not run again.
    pub(crate) fn split_partly_done(&mut self) {
        let keys = self.keys.values_mut();
        for key in keys.filter(|key| key.has_partly_done()) {
            key.split(&self.handlers, &mut self.outgoing, &mut self.deliveries);
        }
    }
}
