//! The third door: the writer took a batch, and wrote it.

use super::{FetchPhase, ForgetList, Generation, Lanes, OutgoingBatch};

impl Lanes {
    /// Everything that is to be written now. Goes back to [`on_written`](Self::on_written).
    pub(crate) fn take_batch(&mut self) -> Option<OutgoingBatch> {
        self.outgoing.take(self.generation)
    }

    /// A batch is written. What it was about leaves memory, at once or when the fetch that is under
    /// way, which may have read the rows of before, has ended.
    pub(crate) fn on_written(&mut self, written: OutgoingBatch) {
        let (generation, list) = written.into_forgotten();
        for (key, handler) in &list.lanes {
            let key = self.keys.get_mut(key).filter(|key| key.is_of(generation));
            if let Some(lane) = key.and_then(|key| key.lane(*handler)) {
                lane.change_written();
            }
        }
        for (key, handler) in &list.lanes {
            self.advance(key, *handler);
        }
        for handler in &list.evicted {
            self.mark_for_refill(*handler);
        }
        match &mut self.fetch {
            FetchPhase::UnderWay { forget_after } => forget_after.push((generation, list)),
            FetchPhase::Idle => self.forget(&list, generation),
        }
    }

    /// What a batch of this generation was about leaves memory, unless it was read again since.
    pub(super) fn forget(&mut self, list: &ForgetList, generation: Generation) {
        self.records.forget(&list.records, generation);
        self.deliveries.forget(&list.deliveries, generation);
        for (name, handler) in &list.lanes {
            let key = self.keys.get_mut(name).filter(|key| key.is_of(generation));
            if key.is_some_and(|key| key.remove_if_forgettable(*handler)) {
                self.keys.remove(name);
            }
        }
    }
}
