//! A database in memory, with the conditions of the real statements. The traits in `store` document
//! each of them. Finished rows are kept.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;

use uuid::Uuid;

use crate::{
    record::{Attempt, DeliveryStatus, Partition, Record, RecordStatus},
    store::{
        Batch, DeliveryRow, Fence, FetchedDelivery, FetchedRecord, InMemory, LaneName, Lease, Page,
    },
};

#[derive(Debug)]
pub(super) struct RecordRow {
    pub(super) partition: Partition,
    pub(super) key: String,
    pub(super) event: &'static str,
    pub(super) status: RecordStatus,
    /// The due time of a delayed record.
    pub(super) due: Option<i64>,
}

#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) record: i64,
    pub(super) partition: Partition,
    pub(super) key: String,
    pub(super) handler: &'static str,
    pub(super) status: DeliveryStatus,
    pub(super) blocking: bool,
    pub(super) attempt: Attempt,
    pub(super) due: i64,
}

#[derive(Debug, Default)]
pub(super) struct Db {
    pub(super) now: i64,
    pub(super) records: BTreeMap<i64, RecordRow>,
    pub(super) deliveries: BTreeMap<i64, Delivery>,
    /// Owner and epoch of each partition.
    pub(super) leases: BTreeMap<Partition, (Uuid, i64)>,
}

impl Delivery {
    pub(super) fn is_open(&self) -> bool {
        [
            DeliveryStatus::Waiting,
            DeliveryStatus::Retrying,
            DeliveryStatus::Failed,
        ]
        .contains(&self.status)
    }

    pub(super) fn is_in(&self, lane: &LaneName) -> bool {
        self.partition == lane.partition && self.key == lane.key && self.handler == lane.handler
    }

    pub(super) fn lane(&self) -> LaneName {
        LaneName {
            partition: self.partition,
            key: self.key.clone(),
            handler: self.handler.to_owned(),
        }
    }
}

/// Reading.
impl Db {
    /// For panic messages.
    pub(super) fn unfinished(&self) -> Vec<(i64, &RecordRow, Vec<&Delivery>)> {
        let rows = self.records.iter();
        let rows = rows.filter(|(_, row)| {
            ![RecordStatus::Completed, RecordStatus::Discarded].contains(&row.status)
        });
        let of = |id: i64| self.deliveries.values().filter(move |row| row.record == id);
        rows.map(|(id, row)| (*id, row, of(*id).collect()))
            .collect()
    }

    pub(super) fn is_unfinished(&self, record: i64) -> bool {
        let mut rows = self.deliveries.values();
        rows.any(|row| row.record == record && row.is_open())
    }

    pub(super) fn leases_of(&self, of: Uuid) -> Vec<Lease> {
        let leases = self.leases.iter().filter(|(_, (owner, _))| *owner == of);
        leases
            .map(|(&partition, &(_, epoch))| Lease { partition, epoch })
            .collect()
    }

    fn fetched(&self, id: i64) -> FetchedRecord {
        let row = &self.records[&id];
        let record = Record::for_tests(id, &row.key, row.event);
        let partition = row.partition;
        FetchedRecord { partition, record }
    }

    fn fetched_delivery(&self, id: i64) -> FetchedDelivery {
        let row = &self.deliveries[&id];
        let lane = row.lane();
        let mut after = self.deliveries.range(id + 1..);
        FetchedDelivery {
            handler: row.handler.to_owned(),
            is_waiting: row.status == DeliveryStatus::Waiting,
            blocking: row.blocking,
            has_followers: after.any(|(_, other)| other.blocking && other.is_in(&lane)),
            attempt: row.attempt,
            record: self.fetched(row.record),
        }
    }

    pub(super) fn pending_records(
        &self,
        pages: &[Page],
        in_memory: &[InMemory],
        per_page: usize,
        limit: usize,
    ) -> Vec<FetchedRecord> {
        let in_memory: HashSet<i64> = in_memory.iter().map(|record| record.id).collect();
        let mut all = Vec::new();
        for page in pages {
            let of_page = self.records.iter().filter(|(id, row)| {
                row.partition == page.partition
                    && row.status == RecordStatus::Pending
                    && **id > page.after
                    && !in_memory.contains(*id)
            });
            all.extend(of_page.take(per_page).map(|(id, _)| self.fetched(*id)));
        }
        all.truncate(limit);
        all
    }

    pub(super) fn due_records(&self, partitions: &[Partition], limit: usize) -> Vec<FetchedRecord> {
        let rows = self.records.iter();
        let mut due: Vec<(i64, i64)> = rows
            .filter(|(_, row)| {
                partitions.contains(&row.partition) && row.status == RecordStatus::Scheduled
            })
            .filter_map(|(id, row)| Some((row.due.filter(|due| *due <= self.now)?, *id)))
            .collect();
        due.sort_unstable();
        let first = due.iter().take(limit);
        first.map(|(_, id)| self.fetched(*id)).collect()
    }

    pub(super) fn due_deliveries(
        &self,
        partitions: &[Partition],
        handlers: &[&str],
        limit: usize,
    ) -> Vec<FetchedDelivery> {
        let is_due = |row: &&Delivery| {
            partitions.contains(&row.partition)
                && handlers.contains(&row.handler)
                && row.status == DeliveryStatus::Retrying
                && row.due <= self.now
        };
        let rows = self.deliveries.iter().filter(|(_, row)| is_due(row));
        let mut due: Vec<(i64, i64)> = rows.map(|(id, row)| (row.due, *id)).collect();
        due.sort_unstable();
        let first = due.iter().take(limit);
        first.map(|(_, id)| self.fetched_delivery(*id)).collect()
    }

    pub(super) fn blocking<'a>(
        &'a self,
        lane: &'a LaneName,
    ) -> impl Iterator<Item = (&'a i64, &'a Delivery)> {
        let rows = self.deliveries.iter();
        rows.filter(|(_, row)| row.blocking && row.is_in(lane))
    }

    pub(super) fn lane_heads(&self, lanes: &[LaneName], per_lane: usize) -> Vec<FetchedDelivery> {
        let of = |lane| self.blocking(lane).take(per_lane);
        let ids = lanes.iter().flat_map(of).map(|(id, _)| *id);
        ids.map(|id| self.fetched_delivery(id)).collect()
    }

    pub(super) fn blocked_among(&self, lanes: &[LaneName]) -> Vec<LaneName> {
        let is_blocked = |lane: &&LaneName| self.blocking(lane).next().is_some();
        lanes.iter().filter(is_blocked).cloned().collect()
    }

    pub(super) fn blocking_keys(
        &self,
        partitions: &[Partition],
        per_partition: usize,
    ) -> Vec<(Partition, String)> {
        let of = |partition: Partition| {
            let rows = self.deliveries.values();
            let rows = rows.filter(move |row| row.blocking && row.partition == partition);
            let keys: BTreeSet<&String> = rows.map(|row| &row.key).collect();
            let first = keys.into_iter().take(per_partition);
            first.map(move |key| (partition, key.clone()))
        };
        partitions.iter().copied().flat_map(of).collect()
    }

    pub(super) fn runnable_lanes(
        &self,
        partitions: &[Partition],
        handlers: &[&str],
        limit: usize,
    ) -> Vec<LaneName> {
        let runnable = self.deliveries.iter().filter(|(id, row)| {
            partitions.contains(&row.partition)
                && handlers.contains(&row.handler)
                && row.status == DeliveryStatus::Waiting
                && row.blocking
                && self.blocking(&row.lane()).next().map(|first| first.0) == Some(*id)
        });
        runnable.take(limit).map(|(_, row)| row.lane()).collect()
    }
}

/// Writing.
impl Db {
    pub(super) fn is_ours(&self, fence: &Fence, partition: Partition) -> bool {
        let is_current = |lease: &Lease| {
            lease.partition == partition && self.leases[&partition].1 == lease.epoch
        };
        fence.leases.iter().any(is_current) && self.leases[&partition].0 == fence.owner
    }

    /// Ends a record that the fence covers and that was not ended before. Returns whether it did.
    fn end(&mut self, fence: &Fence, id: i64, status: RecordStatus) -> bool {
        let row = &self.records[&id];
        let is_open = [RecordStatus::Pending, RecordStatus::Scheduled].contains(&row.status);
        let may_end = is_open && self.is_ours(fence, row.partition);
        if may_end {
            assert!(row.status.may_become(status), "{id}: {status}");
            self.records.get_mut(&id).unwrap().status = status;
        }
        may_end
    }

    pub(super) fn settle(&mut self, fence: &Fence, batch: &Batch) {
        for id in &batch.completed {
            self.end(fence, *id, RecordStatus::Completed);
        }
        for id in &batch.unhandled {
            self.end(fence, *id, RecordStatus::Unhandled);
        }
        let split = batch.split_records.iter().copied();
        let split: HashSet<i64> = split
            .filter(|id| self.end(fence, *id, RecordStatus::Split))
            .collect();
        for row in &batch.new_deliveries {
            let of_row = |other: &Delivery| is_of(other, row);
            if split.contains(&row.record_id) && !self.deliveries.values().any(of_row) {
                let id = self.deliveries.len();
                let delivery = delivery(row, self.now);
                self.deliveries.insert(i64::try_from(id).unwrap(), delivery);
            }
        }
        let mut seen = HashSet::new();
        for row in &batch.changed_deliveries {
            // Databases differ in which of two changes they would take.
            assert!(seen.insert((row.record_id, row.handler)), "twice: {row:?}");
            self.change(fence, row);
        }
        for id in batch.records_to_finish() {
            self.finish(id);
        }
    }

    fn change(&mut self, fence: &Fence, row: &DeliveryRow) -> bool {
        let is_ours = self.is_ours(fence, row.partition);
        let now = self.now;
        let found = self.deliveries.values_mut().find(|other| {
            is_of(other, row)
                && other.attempt.number == row.expected_attempt
                && [DeliveryStatus::Waiting, DeliveryStatus::Retrying].contains(&other.status)
        });
        match found {
            Some(found) if is_ours => {
                assert!(found.status.may_become(row.status), "{found:?}: {row:?}");
                *found = delivery(row, now);
            }
            _ => return false,
        }
        true
    }

    pub(super) fn finish(&mut self, id: i64) {
        if self.records[&id].status == RecordStatus::Split && !self.is_unfinished(id) {
            self.records.get_mut(&id).unwrap().status = RecordStatus::Completed;
        }
    }

    /// The completion inside a handler's own transaction. Returns whether the transaction may
    /// commit.
    pub(super) fn complete(&mut self, fence: &Fence, row: &DeliveryRow, has_row: bool) -> bool {
        if !has_row && self.end(fence, row.record_id, RecordStatus::Completed) {
            return true;
        }
        let changed = self.change(fence, row);
        if changed {
            self.finish(row.record_id);
        }
        changed
    }
}

fn is_of(delivery: &Delivery, row: &DeliveryRow) -> bool {
    delivery.record == row.record_id && delivery.handler == row.handler
}

fn delivery(row: &DeliveryRow, now: i64) -> Delivery {
    Delivery {
        record: row.record_id,
        partition: row.partition,
        key: row.key.clone(),
        handler: row.handler,
        status: row.status,
        blocking: row.blocking,
        attempt: super::attempt(row.attempt),
        due: now + row.due_in.unwrap_or(0),
    }
}
