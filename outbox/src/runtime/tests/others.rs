//! Changes of the database by others: publishers, operators, another process.

use uuid::Uuid;

use crate::record::{DeliveryStatus, Partition, RecordStatus};
use crate::runtime::tests::db::{Db, RecordRow};

impl Db {
    pub(super) fn publish(&mut self, key: u16, event: &'static str, delay: Option<i64>) {
        let id = i64::try_from(self.records.len()).unwrap() + 1;
        let row = RecordRow {
            partition: Partition::new(key % 2),
            key: format!("k{key}"),
            event,
            status: if delay.is_some() {
                RecordStatus::Scheduled
            } else {
                RecordStatus::Pending
            },
            due: delay.map(|delay| self.now + delay),
        };
        self.records.insert(id, row);
    }

    pub(super) fn replay(&mut self, id: i64) {
        let now = self.now;
        let row = self.deliveries.get_mut(&id).unwrap();
        if row.status == DeliveryStatus::Failed {
            row.attempt.number += 1;
            row.attempt.failure_count = 0;
        }
        if [DeliveryStatus::Failed, DeliveryStatus::Retrying].contains(&row.status) {
            (row.status, row.due) = (DeliveryStatus::Retrying, now);
        }
    }

    /// Discards a delivery. If the next delivery of its lane waited only for it, that one is due
    /// now.
    pub(super) fn discard(&mut self, id: i64) {
        let now = self.now;
        let row = self.deliveries.get_mut(&id).unwrap();
        if !row.is_open() {
            return;
        }
        (row.status, row.blocking) = (DeliveryStatus::Discarded, false);
        let (record, lane) = (row.record, row.lane());
        if !self.is_unfinished(record) && self.records[&record].status == RecordStatus::Split {
            self.records.get_mut(&record).unwrap().status = RecordStatus::Discarded;
        }
        let mut rest = self.deliveries.values_mut();
        if let Some(first) = rest.find(|row| row.blocking && row.is_in(&lane))
            && first.status == DeliveryStatus::Waiting
        {
            (first.status, first.due) = (DeliveryStatus::Retrying, now);
        }
    }

    /// Gives the partition to this owner, with a new epoch.
    pub(super) fn set_owner(&mut self, partition: Partition, owner: Uuid) {
        let lease = self.leases.entry(partition).or_insert((owner, 0));
        *lease = (owner, lease.1 + 1);
    }

    /// Another owner completes the next record or delivery of this partition.
    pub(super) fn complete_next(&mut self, partition: Partition) -> Vec<(i64, &'static str)> {
        let lanes = self.deliveries.iter();
        let first = lanes.filter(|(id, row)| {
            row.partition == partition
                && row.status != DeliveryStatus::Failed
                && self.blocking(&row.lane()).next().map(|first| first.0) == Some(*id)
        });
        if let Some(id) = first.map(|(id, _)| *id).next() {
            let row = self.deliveries.get_mut(&id).unwrap();
            (row.status, row.blocking) = (DeliveryStatus::Completed, false);
            let (record, handler) = (row.record, row.handler);
            self.finish(record);
            return vec![(record, handler)];
        }
        let blocking = self.blocking_keys(&[partition], 1);
        let is_pending =
            |row: &RecordRow| row.partition == partition && row.status == RecordStatus::Pending;
        let mut records = self.records.iter_mut();
        match records.find(|(_, row)| blocking.is_empty() && is_pending(row)) {
            Some((id, row)) => {
                row.status = RecordStatus::Completed;
                let handlers = super::laws::route(row.event).iter();
                handlers.map(|handler| (*id, *handler)).collect()
            }
            None => Vec::new(),
        }
    }
}
