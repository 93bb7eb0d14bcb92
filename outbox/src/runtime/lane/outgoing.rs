//! [`Outgoing`]: what is to be written, and forgotten after that.

use std::mem;

use super::{Generation, Keys, Memory};
use crate::{
    record::DeliveryStatus,
    registry::HandlerIx,
    store::{Batch, DeliveryRow, FailureRow},
};

/// The batch under construction, and what leaves memory once it is written.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    batch: Batch,
    forget: ForgetList,
}

/// What leaves memory once a batch is written.
#[derive(Debug, Default)]
pub(super) struct ForgetList {
    pub(super) records: Vec<i64>,
    pub(super) deliveries: Vec<(i64, HandlerIx)>,
    /// Lanes that have an unwritten change, once per change: key and handler.
    pub(super) lanes: Vec<(Box<str>, HandlerIx)>,
    /// Handlers with lanes that can be found in the database once this is written.
    pub(super) evicted: Vec<HandlerIx>,
}

/// A batch that was taken to be written. Goes back to `Engine::on_written`.
#[derive(Debug)]
pub(crate) struct OutgoingBatch {
    outgoing: Outgoing,
    /// Of the moment when the batch was taken.
    generation: Generation,
}

/// Whether a fetch is under way. It may have read rows before they were written, so memory forgets
/// what is written meanwhile only when it ends.
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

    /// How many records are simply completed.
    pub(super) fn completions(&self) -> usize {
        self.batch.completed.len()
    }

    /// Nothing but completed records is to be written.
    pub(super) fn has_only_completions(&self) -> bool {
        self.batch.has_only_completed() && self.has_only_records_to_forget()
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

    /// No handler here takes the record.
    pub(super) fn set_unhandled(&mut self, id: i64) {
        self.batch.unhandled.push(id);
        self.forget.records.push(id);
    }

    /// The record gets delivery rows, which are added after this.
    pub(super) fn split_record(&mut self, id: i64) {
        self.batch.split_records.push(id);
        self.forget.records.push(id);
    }

    /// A row of a record that is split.
    pub(super) fn add_delivery(&mut self, row: DeliveryRow) {
        self.batch.new_deliveries.push(row);
    }

    /// What an attempt made of a delivery, and its failure for the history. `is_new`: its record was
    /// split just now, so the row is among the last that were added, and can be what it is to be
    /// from the start.
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

    /// Drops everything about these partitions, of which nothing is in memory any more. The batch is
    /// taken in a later generation, in which the same may be read again.
    pub(super) fn drop_partitions(
        &mut self,
        lost: &[u16],
        records: &Memory<i64>,
        deliveries: &Memory<(i64, HandlerIx)>,
        keys: &Keys,
    ) {
        let is_kept = |partition: u16| !lost.contains(&partition);
        let has_record = |id: &i64| records.contains(id);
        let Self { batch, forget } = self;
        batch.completed.retain(has_record);
        batch.unhandled.retain(has_record);
        batch.split_records.retain(has_record);
        batch.new_deliveries.retain(|row| is_kept(row.part));
        batch.changed_deliveries.retain(|row| is_kept(row.part));
        batch.failures.retain(|row| is_kept(row.part));
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
    /// What is to be written.
    pub(crate) fn batch(&self) -> &Batch {
        &self.outgoing.batch
    }

    /// Moves what is due by as many microseconds as the database's clock is ahead of ours.
    pub(crate) fn shift(&mut self, micros: i64) {
        self.outgoing.batch.shift(micros);
    }

    pub(super) fn into_forgotten(self) -> (Generation, ForgetList) {
        (self.generation, self.outgoing.forget)
    }
}
