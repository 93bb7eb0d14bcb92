//! [`Memory`]: which records and deliveries are in memory.

use hashbrown::{HashMap, HashSet};

use super::ForgetList;
use crate::{registry::HandlerIx, store::InMemory};

/// Grows when partitions are lost. What was taken to be written in an older generation says nothing
/// about what was read in a newer one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(u32);

/// Where something in memory came from: its partition, and since when it is here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) partition: u16,
    pub(super) generation: Generation,
}

/// Which records and deliveries are in memory. They stay until what became of them is written and no
/// fetch is under way that started before: such a fetch may bring them again, and they must not
/// start again. Dropped, everything is read again.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Records that were read as pending or scheduled.
    records: HashMap<i64, Origin>,
    deliveries: HashMap<(i64, HandlerIx), Origin>,
    /// How many of both, by partition.
    per_partition: Vec<usize>,
    generation: Generation,
}

impl Memory {
    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// Of something that is read now.
    pub(super) fn origin(&self, partition: u16) -> Origin {
        Origin {
            partition,
            generation: self.generation,
        }
    }

    /// A record was read. Whether it was not in memory.
    pub(super) fn admit_record(&mut self, id: i64, partition: u16) -> bool {
        let origin = self.origin(partition);
        let is_new = self.records.try_insert(id, origin).is_ok();
        if is_new {
            self.count_mut(partition, |count| count + 1);
        }
        is_new
    }

    /// A delivery was read. Whether it was not in memory.
    pub(super) fn admit_delivery(&mut self, delivery: (i64, HandlerIx), partition: u16) -> bool {
        let is_new = !self.deliveries.contains_key(&delivery);
        if is_new {
            self.add_delivery(delivery, self.origin(partition));
        }
        is_new
    }

    /// A delivery is in memory, because its record is split or was just read.
    pub(super) fn add_delivery(&mut self, delivery: (i64, HandlerIx), origin: Origin) {
        if self.deliveries.insert(delivery, origin).is_none() {
            self.count_mut(origin.partition, |count| count + 1);
        }
    }

    /// A record leaves memory that the database knows as it was read.
    pub(super) fn remove_record(&mut self, id: i64) {
        if let Some(origin) = self.records.remove(&id) {
            self.count_mut(origin.partition, |count| count - 1);
        }
    }

    /// What a batch of this generation was about leaves memory, unless it was read again since.
    pub(super) fn forget(&mut self, list: &ForgetList, generation: Generation) {
        let is_old = |origin: &Origin| origin.generation <= generation;
        for id in &list.records {
            if self.records.get(id).is_some_and(is_old) {
                self.remove_record(*id);
            }
        }
        for delivery in &list.deliveries {
            if self.deliveries.get(delivery).is_some_and(is_old)
                && let Some(origin) = self.deliveries.remove(delivery)
            {
                self.count_mut(origin.partition, |count| count - 1);
            }
        }
    }

    /// Everything of these partitions leaves memory, and a new generation begins.
    pub(super) fn drop_partitions(&mut self, lost: &[u16]) {
        self.generation.0 += 1;
        let is_kept = |origin: &Origin| !lost.contains(&origin.partition);
        self.records.retain(|_, origin| is_kept(origin));
        self.deliveries.retain(|_, origin| is_kept(origin));
        for partition in lost {
            self.count_mut(*partition, |_| 0);
        }
    }

    fn count_mut(&mut self, partition: u16, change: impl FnOnce(usize) -> usize) {
        let at = usize::from(partition);
        if self.per_partition.len() <= at {
            self.per_partition.resize(at + 1, 0);
        }
        self.per_partition[at] = change(self.per_partition[at]);
    }
}

/// Questions.
impl Memory {
    /// How many records and deliveries are in memory.
    pub(super) fn len(&self) -> usize {
        self.records.len() + self.deliveries.len()
    }

    /// The same, of one partition.
    pub(super) fn count(&self, partition: u16) -> usize {
        let count = self.per_partition.get(usize::from(partition));
        count.copied().unwrap_or(0)
    }

    pub(super) fn has_record(&self, id: i64) -> bool {
        self.records.contains_key(&id)
    }

    pub(super) fn has_delivery(&self, delivery: (i64, HandlerIx)) -> bool {
        self.deliveries.contains_key(&delivery)
    }

    pub(super) fn records(&self) -> Vec<InMemory> {
        let of = |(id, origin): (&i64, &Origin)| InMemory {
            part: origin.partition,
            id: *id,
        };
        self.records.iter().map(of).collect()
    }

    pub(super) fn deliveries(&self) -> HashSet<(i64, HandlerIx)> {
        self.deliveries.keys().copied().collect()
    }
}
