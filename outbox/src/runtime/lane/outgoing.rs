//! [`Outgoing`]: the changes that are to be written, and what memory forgets after that.

use std::mem;

use super::{Generation, Keys, Memory};
use crate::{
    record::{DeliveryStatus, Partition},
    registry::HandlerIx,
    store::{Batch, DeliveryRow, FailureRow},
};

/// The batch under construction, and its list of what leaves memory once it is written.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    batch: Batch,
    forget: ForgetList,
}

/// The rows and lanes that leave memory once a batch is written.
#[derive(Debug, Default)]
pub(super) struct ForgetList {
    pub(super) records: Vec<i64>,
    pub(super) deliveries: Vec<(i64, HandlerIx)>,
    /// Key and handler of lanes with an unwritten change, one entry per change.
    pub(super) lanes: Vec<(Box<str>, HandlerIx)>,
    /// Handlers with lanes that a search can find once the batch is written.
    pub(super) evicted: Vec<HandlerIx>,
}

/// A batch that was taken to be written. `Engine::on_written` takes it back.
#[derive(Debug)]
pub(crate) struct OutgoingBatch {
    outgoing: Outgoing,
    /// The generation in which the batch was taken.
    generation: Generation,
}

/// Whether a fetch is under way. The fetch may have read the old rows, so memory forgets batches
/// that are written meanwhile only when it ends.
#[derive(Debug)]
pub(super) enum FetchPhase {
    Idle,
    UnderWay {
        forget_after: Vec<(Generation, ForgetList)>,
    },
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.has_only_records_to_forget()
    }

    /// How many whole records are completed.
    pub(super) fn completions(&self) -> usize {
        self.batch.completed.len()
    }

    /// Whether only completed records are to be written.
    pub(super) fn has_only_completions(&self) -> bool {
        self.batch.has_only_completions() && self.has_only_records_to_forget()
    }

    fn has_only_records_to_forget(&self) -> bool {
        let forget = &self.forget;
        forget.deliveries.is_empty() && forget.lanes.is_empty() && forget.evicted.is_empty()
    }

    pub(super) fn take(&mut self, generation: Generation) -> Option<OutgoingBatch> {
        let is_taken = !self.is_empty();
        is_taken.then(|| OutgoingBatch {
            outgoing: mem::take(self),
            generation,
        })
    }

    /// All handlers completed a whole record.
    pub(super) fn complete_record(&mut self, id: i64) {
        self.batch.completed.push(id);
        self.forget.records.push(id);
    }

    /// No handler of this process takes the record.
    pub(super) fn set_unhandled(&mut self, id: i64) {
        self.batch.unhandled.push(id);
        self.forget.records.push(id);
    }

    /// The record gets delivery rows, which are added after this.
    pub(super) fn split_record(&mut self, id: i64) {
        self.batch.split_records.push(id);
        self.forget.records.push(id);
    }

    /// Adds a row of a split record.
    pub(super) fn add_delivery(&mut self, row: DeliveryRow) {
        self.batch.new_deliveries.push(row);
    }

    /// Sets the row of a delivery after an attempt, and adds its failure to the history. `is_new`:
    /// its record was split just now. Its row is then among the last that were added, and is
    /// replaced there.
    pub(super) fn set_delivery(
        &mut self,
        row: DeliveryRow,
        failure: Option<FailureRow>,
        is_new: bool,
    ) {
        self.batch.failures.extend(failure);
        let mut added = self.batch.new_deliveries.iter_mut().rev();
        if is_new
            && row.status != DeliveryStatus::Completed
            && let Some(new) =
                added.find(|new| (new.record_id, new.handler) == (row.record_id, row.handler))
        {
            *new = row;
        } else {
            self.batch.changed_deliveries.push(row);
        }
    }

    /// This delivery leaves memory once the batch is written.
    pub(super) fn forget_delivery(&mut self, id: i64, handler: HandlerIx) {
        self.forget.deliveries.push((id, handler));
    }

    /// The batch contains a change of this lane, which has noted it.
    pub(super) fn change_lane(&mut self, key: &str, handler: HandlerIx) {
        self.forget.lanes.push((key.into(), handler));
    }

    /// The batch parks lanes that could run.
    pub(super) fn evict_lanes_of(&mut self, handler: HandlerIx) {
        self.forget.evicted.push(handler);
    }

    /// Drops everything about these partitions, which memory has forgotten. The batch will be taken
    /// in a later generation, in which the same records may be read again.
    pub(super) fn drop_partitions(
        &mut self,
        lost: &[Partition],
        records: &Memory<i64>,
        deliveries: &Memory<(i64, HandlerIx)>,
        keys: &Keys,
    ) {
        let is_kept = |partition: Partition| !lost.contains(&partition);
        let has_record = |id: &i64| records.contains(id);
        let Self { batch, forget } = self;
        batch.completed.retain(has_record);
        batch.unhandled.retain(has_record);
        batch.split_records.retain(has_record);
        batch.new_deliveries.retain(|row| is_kept(row.partition));
        batch
            .changed_deliveries
            .retain(|row| is_kept(row.partition));
        batch.failures.retain(|row| is_kept(row.partition));
        forget.records.retain(has_record);
        forget.deliveries.retain(|id| deliveries.contains(id));
        forget.lanes.retain(|(key, _)| keys.contains_key(key));
    }
}

impl ForgetList {
    pub(super) fn of_lane(key: &str, handler: HandlerIx) -> Self {
        Self {
            lanes: vec![(key.into(), handler)],
            ..Self::default()
        }
    }
}

impl OutgoingBatch {
    /// The changes to write.
    pub(crate) fn batch(&self) -> &Batch {
        &self.outgoing.batch
    }

    /// Adds to due times how many microseconds the database's clock is ahead of this process's.
    pub(crate) fn shift_due(&mut self, micros: i64) {
        self.outgoing.batch.shift_due(micros);
    }

    pub(super) fn into_forgotten(self) -> (Generation, ForgetList) {
        (self.generation, self.outgoing.forget)
    }
}
