//! [`Memory`]: which records or deliveries are in memory.

use std::hash::Hash;

use hashbrown::{HashMap, hash_map::Entry};

use crate::record::Partition;

/// Grows when partitions are lost. A batch of an older generation says nothing about records that
/// were read in a newer one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(pub(super) u32);

/// The partition of a record or key in memory, and the generation in which it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) partition: Partition,
    pub(super) generation: Generation,
}

/// The records or deliveries in memory. They stay until their results are written and no fetch is
/// under way that started before: such a fetch may return them again, and they must not start
/// again. After it is dropped, the event loop reads everything again.
#[derive(Debug)]
pub(super) struct Memory<Id> {
    origins: HashMap<Id, Origin>,
    per_partition: Vec<usize>,
}

impl<Id: Copy + Eq + Hash> Memory<Id> {
    pub(super) fn new() -> Self {
        Self {
            origins: HashMap::new(),
            per_partition: Vec::new(),
        }
    }

    /// Adds a record or delivery that was read or split. Returns whether it was not in memory.
    pub(super) fn admit(&mut self, id: Id, origin: Origin) -> bool {
        let is_new = self.origins.try_insert(id, origin).is_ok();
        if is_new {
            let at = origin.partition.index();
            if self.per_partition.len() <= at {
                self.per_partition.resize(at + 1, 0);
            }
            self.per_partition[at] += 1;
        }
        is_new
    }

    /// Forgets the rows of a batch of this generation, unless they were read again since.
    pub(super) fn forget(&mut self, ids: &[Id], generation: Generation) {
        for id in ids {
            if let Entry::Occupied(entry) = self.origins.entry(*id)
                && entry.get().generation <= generation
            {
                let origin = entry.remove();
                self.per_partition[origin.partition.index()] -= 1;
            }
        }
    }

    /// Forgets everything of these partitions.
    pub(super) fn drop_partitions(&mut self, lost: &[Partition]) {
        self.origins
            .retain(|_, origin| !lost.contains(&origin.partition));
        for partition in lost {
            if let Some(count) = self.per_partition.get_mut(partition.index()) {
                *count = 0;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.origins.len()
    }

    /// How many of one partition are in memory.
    pub(super) fn count(&self, partition: Partition) -> usize {
        let count = self.per_partition.get(partition.index());
        count.copied().unwrap_or(0)
    }

    pub(super) fn contains(&self, id: &Id) -> bool {
        self.origins.contains_key(id)
    }

    /// Everything, with its partition.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, Partition)> {
        let origins = self.origins.iter();
        origins.map(|(id, origin)| (*id, origin.partition))
    }
}
