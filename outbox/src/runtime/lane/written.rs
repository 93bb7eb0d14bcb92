//! The third input: the writer takes a batch, and reports that it is written.

use super::Lanes;
use crate::runtime::lane::{FetchPhase, ForgetList, Generation, OutgoingBatch};

impl Lanes {
    /// Takes all changes that are to be written now. [`on_written`](Self::on_written) follows.
    pub(crate) fn take_batch(&mut self) -> Option<OutgoingBatch> {
        self.outgoing.take(self.generation)
    }

    /// A batch is written. Its records leave memory at once, or, because a fetch that is under way
    /// may have read the old rows, when that fetch ends.
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

    /// Forgets the rows of a batch of this generation, unless they were read again since.
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
