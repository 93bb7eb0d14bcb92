//! [`Memory`]: which records or deliveries are in memory.

use std::hash::Hash;

use hashbrown::{HashMap, hash_map::Entry};

/// Grows when partitions are lost. What was taken to be written in an older generation says nothing
/// about what was read in a newer one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(pub(super) u32);

/// Where something in memory came from: its partition, and since when it is here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) partition: u16,
    pub(super) generation: Generation,
}

/// Which records or deliveries are in memory. They stay until what became of them is written and no
/// fetch is under way that started before: such a fetch may bring them again, and they must not
/// start again. Dropped, everything is read again.
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

    /// It was read, or its record is split. Whether it was not in memory.
    pub(super) fn admit(&mut self, id: Id, origin: Origin) -> bool {
        let is_new = self.origins.try_insert(id, origin).is_ok();
        if is_new {
            let at = usize::from(origin.partition);
            if self.per_partition.len() <= at {
                self.per_partition.resize(at + 1, 0);
            }
            self.per_partition[at] += 1;
        }
        is_new
    }

    /// What a batch of this generation was about leaves memory, unless it was read again since.
    pub(super) fn forget(&mut self, ids: &[Id], generation: Generation) {
        for id in ids {
            if let Entry::Occupied(entry) = self.origins.entry(*id)
                && entry.get().generation <= generation
            {
                let origin = entry.remove();
                self.per_partition[usize::from(origin.partition)] -= 1;
            }
        }
    }

    /// Everything of these partitions leaves memory.
    pub(super) fn drop_partitions(&mut self, lost: &[u16]) {
        self.origins
            .retain(|_, origin| !lost.contains(&origin.partition));
        for partition in lost {
            if let Some(count) = self.per_partition.get_mut(usize::from(*partition)) {
                *count = 0;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.origins.len()
    }

    /// How many there are of one partition.
    pub(super) fn count(&self, partition: u16) -> usize {
        let count = self.per_partition.get(usize::from(partition));
        count.copied().unwrap_or(0)
    }

    pub(super) fn contains(&self, id: &Id) -> bool {
        self.origins.contains_key(id)
    }

    /// Everything, with its partition.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, u16)> {
        let origins = self.origins.iter();
        origins.map(|(id, origin)| (*id, origin.partition))
    }
}
