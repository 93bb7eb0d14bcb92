//! What others do to the database: publishers, a person on call, another process.

use uuid::Uuid;

use crate::record::{DeliveryStatus, RecordStatus};
use crate::runtime::tests::db::{Db, RecordRow};

impl Db {
    pub(super) fn publish(&mut self, key: u16, event: &'static str, delay: Option<i64>) {
        let id = i64::try_from(self.records.len()).unwrap() + 1;
        let row = RecordRow {
            part: key % 2,
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

    /// Discards a delivery. The next of its lane, if it waits only for that, is due now.
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

    /// Another owner gets this partition, or the same one again.
    pub(super) fn give(&mut self, part: u16, owner: Uuid) {
        let lease = self.leases.entry(part).or_insert((owner, 0));
        *lease = (owner, lease.1 + 1);
    }

    /// What another owner completes next in this partition.
    pub(super) fn work_off(&mut self, part: u16) -> Vec<(i64, &'static str)> {
        let lanes = self.deliveries.iter();
        let first = lanes.filter(|(id, row)| {
            row.part == part
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
        let blocked = self.blocked_keys(&[part], 1);
        let pending = |row: &RecordRow| row.part == part && row.status == RecordStatus::Pending;
        let mut records = self.records.iter_mut();
        match records.find(|(_, row)| blocked.is_empty() && pending(row)) {
            Some((id, row)) => {
                row.status = RecordStatus::Completed;
                let handlers = super::laws::route(row.event).iter();
                handlers.map(|handler| (*id, *handler)).collect()
            }
            None => Vec::new(),
        }
    }
}
