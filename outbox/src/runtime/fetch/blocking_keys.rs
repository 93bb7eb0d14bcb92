//! [`BlockingKeys`]: keys that may have a blocking delivery. A fetch checks only their lanes.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet};

use crate::record::Partition;

/// May contain too many keys, never too few. A record of a missing key would run past a blocking
/// delivery; a key too many costs one query.
///
/// Why none is missing: only the owner of a partition writes blocking deliveries. The first sweep
/// after a partition was gained reads those of earlier owners, after the records that may have to
/// wait behind them; until then every key of the partition may block. The engine adds the keys of
/// its own batches [before](Self::add_key) they are written. Operators only end blocking
/// deliveries, or have them retried; they restore one only in a partition without an owner. A fetch may miss a row that is written while it runs; the lane
/// of that row stays in memory until the fetch has ended, and memory wins.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockingKeys {
    /// Partitions in which every key may block.
    unread_partitions: HashSet<Partition>,
    /// The hashes of keys in the other partitions. Two keys with the same hash are both checked.
    key_hashes: HashSet<u64>,
    hasher: DefaultHashBuilder,
}

/// The largest number of keys. A partition with more than its share is in `unread_partitions`.
const MAX_KEYS: usize = 131_072;

impl BlockingKeys {
    pub(crate) fn may_block(&self, partition: Partition, key: &str) -> bool {
        // Usually the set is empty, and the key need not be hashed.
        self.unread_partitions.contains(&partition)
            || !self.key_hashes.is_empty() && self.key_hashes.contains(&self.hasher.hash_one(key))
    }

    /// A delivery of this key will block.
    pub(crate) fn add_key(&mut self, partition: Partition, key: &str) {
        if self.key_hashes.len() < MAX_KEYS {
            self.key_hashes.insert(self.hasher.hash_one(key));
        } else {
            self.unread_partitions.insert(partition);
        }
    }

    /// Every key of this partition may block.
    pub(crate) fn assume_all(&mut self, partition: Partition) {
        self.unread_partitions.insert(partition);
    }

    /// This process no longer owns the partition. The hashes of its keys stay, which does no harm.
    pub(crate) fn drop_partition(&mut self, partition: Partition) {
        self.unread_partitions.remove(&partition);
    }

    /// How many keys to read of each of `partitions` partitions.
    pub(crate) fn keys_per_partition(partitions: usize) -> usize {
        (MAX_KEYS / partitions.max(1)).max(1)
    }

    /// The set after a sweep, which read these blocking keys, at most `per_partition` of each.
    pub(crate) fn replaced_by(&self, keys: &[(Partition, String)], per_partition: usize) -> Self {
        let mut counts: HashMap<Partition, usize> = HashMap::new();
        for (partition, _) in keys {
            *counts.entry(*partition).or_default() += 1;
        }
        // A partition that reached the limit may have more.
        counts.retain(|_, count| *count >= per_partition);
        let hasher = self.hasher.clone();
        let read = keys
            .iter()
            .filter(|(partition, _)| !counts.contains_key(partition));
        Self {
            key_hashes: read.map(|(_, key)| hasher.hash_one(key.as_str())).collect(),
            unread_partitions: counts.into_keys().collect(),
            hasher,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(number: u16) -> Partition {
        Partition::new(number)
    }

    fn read(keys: &[(u16, &str)], per_partition: usize) -> BlockingKeys {
        let keys = keys.iter().map(|(number, key)| (p(*number), (*key).into()));
        let keys: Vec<(Partition, String)> = keys.collect();
        BlockingKeys::default().replaced_by(&keys, per_partition)
    }

    #[test]
    fn every_key_of_a_gained_partition_may_block_until_it_is_read() {
        let mut keys = BlockingKeys::default();
        assert!(!keys.may_block(p(3), "a"));
        keys.assume_all(p(3));
        assert!(keys.may_block(p(3), "a") && keys.may_block(p(3), "b"));
        assert!(!keys.may_block(p(4), "a"));
        let keys = keys.replaced_by(&[(p(3), "a".to_owned())], 9);
        assert!(keys.may_block(p(3), "a") && !keys.may_block(p(3), "b"));
        let mut dropped = keys.clone();
        dropped.assume_all(p(4));
        dropped.drop_partition(p(4));
        assert!(!dropped.may_block(p(4), "b"));
    }

    #[test]
    fn every_key_of_a_partition_that_reached_the_limit_may_block() {
        let keys = read(&[(1, "a"), (2, "b"), (2, "c")], 2);
        assert!(keys.may_block(p(1), "a") && !keys.may_block(p(1), "x"));
        assert!(keys.may_block(p(2), "b") && keys.may_block(p(2), "x"));
    }

    #[test]
    fn the_number_of_keys_is_limited_and_none_is_missed() {
        let mut keys = BlockingKeys::default();
        for n in 0..MAX_KEYS + 10 {
            keys.add_key(p(7), &format!("key {n}"));
        }
        assert_eq!(keys.key_hashes.len(), MAX_KEYS);
        assert!((0..MAX_KEYS + 10).all(|n| keys.may_block(p(7), &format!("key {n}"))));
        assert!(!keys.may_block(p(8), "other"));
        assert!(BlockingKeys::keys_per_partition(64) * 64 <= MAX_KEYS);
        assert_eq!(BlockingKeys::keys_per_partition(0), MAX_KEYS);
        assert_eq!(BlockingKeys::keys_per_partition(MAX_KEYS * 2), 1);
    }
}
