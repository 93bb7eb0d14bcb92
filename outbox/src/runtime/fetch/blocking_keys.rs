//! [`BlockingKeys`]: keys in which something may block. Only their lanes are asked about.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet};

/// May contain too many keys, never too few. A key that is missing would run past a blocking delivery;
/// a key too many costs one query.
///
/// Why none is missed: whatever blocks was written by the owner of its partition. What others
/// wrote is read after the partition was gained and after the records that may have to wait
/// behind it; until then all of the partition may block. What this process writes is in here
/// [before](Self::add_key) it is written. Operators only end what blocks, or have it tried again. And
/// a fetch that is under way while something is written is wrong about nothing: a lane of which
/// rows were written stays in memory until that fetch has ended, and knows better.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockingKeys {
    /// Partitions of which no more is known.
    unread_partitions: HashSet<u16>,
    /// Of the others, the hashes of keys: two that have the same are both asked about.
    key_hashes: HashSet<u64>,
    hasher: DefaultHashBuilder,
}

/// How many keys are remembered. All of a partition may block that has more than its share.
const MAX_KEYS: usize = 131_072;

impl BlockingKeys {
    pub(crate) fn may_block(&self, part: u16, key: &str) -> bool {
        // Mostly there is nothing, and no need to hash.
        self.unread_partitions.contains(&part)
            || !self.key_hashes.is_empty() && self.key_hashes.contains(&self.hasher.hash_one(key))
    }

    /// Something of this key will block.
    pub(crate) fn add_key(&mut self, part: u16, key: &str) {
        if self.key_hashes.len() < MAX_KEYS {
            self.key_hashes.insert(self.hasher.hash_one(key));
        } else {
            self.unread_partitions.insert(part);
        }
    }

    /// Anything of this partition may block.
    pub(crate) fn assume_all(&mut self, part: u16) {
        self.unread_partitions.insert(part);
    }

    /// The partition is not ours any more. Its keys may stay: there is nothing to ask about them.
    pub(crate) fn drop_partition(&mut self, part: u16) {
        self.unread_partitions.remove(&part);
    }

    /// How many keys of each of so many partitions are to be read.
    pub(crate) fn keys_per_partition(parts: usize) -> usize {
        (MAX_KEYS / parts.max(1)).max(1)
    }

    /// What was read: the keys in which something blocks, at most so many of each partition.
    pub(crate) fn replaced_by(&self, keys: &[(u16, String)], per_part: usize) -> Self {
        let mut counts: HashMap<u16, usize> = HashMap::new();
        for (part, _) in keys {
            *counts.entry(*part).or_default() += 1;
        }
        // As many as were asked for: there may be more.
        counts.retain(|_, count| *count >= per_part);
        let hasher = self.hasher.clone();
        let read = keys.iter().filter(|(part, _)| !counts.contains_key(part));
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

    fn read(keys: &[(u16, &str)], per_part: usize) -> BlockingKeys {
        let keys: Vec<(u16, String)> = keys.iter().map(|(p, key)| (*p, (*key).into())).collect();
        BlockingKeys::default().replaced_by(&keys, per_part)
    }

    #[test]
    fn of_a_partition_that_was_gained_every_key_may_block_until_it_was_read() {
        let mut keys = BlockingKeys::default();
        assert!(!keys.may_block(3, "a"));
        keys.assume_all(3);
        assert!(keys.may_block(3, "a") && keys.may_block(3, "b"));
        assert!(!keys.may_block(4, "a"));
        let keys = keys.replaced_by(&[(3, "a".to_owned())], 9);
        assert!(keys.may_block(3, "a") && !keys.may_block(3, "b"));
        let mut again = keys.clone();
        again.assume_all(4);
        again.drop_partition(4);
        assert!(!again.may_block(4, "b"));
    }

    #[test]
    fn of_a_partition_with_more_keys_than_were_read_every_one_may_block() {
        let keys = read(&[(1, "a"), (2, "b"), (2, "c")], 2);
        assert!(keys.may_block(1, "a") && !keys.may_block(1, "x"));
        assert!(keys.may_block(2, "b") && keys.may_block(2, "x"));
    }

    #[test]
    fn no_more_keys_are_remembered_than_there_is_room_for_and_none_is_missed() {
        let mut keys = BlockingKeys::default();
        for n in 0..MAX_KEYS + 10 {
            keys.add_key(7, &format!("key {n}"));
        }
        assert_eq!(keys.key_hashes.len(), MAX_KEYS);
        assert!((0..MAX_KEYS + 10).all(|n| keys.may_block(7, &format!("key {n}"))));
        assert!(!keys.may_block(8, "other"));
        assert!(BlockingKeys::keys_per_partition(64) * 64 <= MAX_KEYS);
        assert_eq!(BlockingKeys::keys_per_partition(0), MAX_KEYS);
        assert_eq!(BlockingKeys::keys_per_partition(MAX_KEYS * 2), 1);
    }
}
