//! In which keys something may block: only their lanes are asked about.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet};

/// Never one key too few: what is read of a key that is not in here runs without a question. One
/// too many costs that question.
///
/// Why none is missed: whatever blocks was written by the owner of its partition. What others
/// wrote is read after the partition was gained and after the records that may have to wait
/// behind it; until then all of the partition may block. What this process writes is in here
/// [before](Self::add) it is written. Operators only end what blocks, or have it tried again. And
/// a fetch that is under way while something is written is wrong about nothing: a lane of which
/// rows were written stays in memory until it has arrived, and knows better.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockingKeys {
    /// Partitions of which no more is known.
    parts: HashSet<u16>,
    /// Of the others, the hashes of keys: two that have the same are both asked about.
    keys: HashSet<u64>,
    hasher: DefaultHashBuilder,
}

/// How many keys are remembered. All of a partition may block that has more than its share.
const MOST: usize = 131_072;

impl BlockingKeys {
    pub(crate) fn contains(&self, part: u16, key: &str) -> bool {
        // Mostly there is nothing, and no need to hash.
        self.parts.contains(&part)
            || !self.keys.is_empty() && self.keys.contains(&self.hasher.hash_one(key))
    }

    /// Something of this key will block.
    pub(crate) fn add(&mut self, part: u16, key: &str) {
        if self.keys.len() < MOST {
            self.keys.insert(self.hasher.hash_one(key));
        } else {
            self.parts.insert(part);
        }
    }

    /// Anything of this partition may block.
    pub(crate) fn add_part(&mut self, part: u16) {
        self.parts.insert(part);
    }

    /// The partition is not ours any more. Its keys may stay: there is nothing to ask about them.
    pub(crate) fn remove_part(&mut self, part: u16) {
        self.parts.remove(&part);
    }

    /// How many keys of each of so many partitions are to be read.
    pub(crate) fn per_part(parts: usize) -> usize {
        (MOST / parts.max(1)).max(1)
    }

    /// What was read: the keys in which something blocks, at most so many of each partition.
    pub(crate) fn read(&self, keys: &[(u16, String)], per_part: usize) -> Self {
        let mut counts: HashMap<u16, usize> = HashMap::new();
        for (part, _) in keys {
            *counts.entry(*part).or_default() += 1;
        }
        // As many as were asked for: there may be more.
        counts.retain(|_, count| *count >= per_part);
        let hasher = self.hasher.clone();
        let known = keys.iter().filter(|(part, _)| !counts.contains_key(part));
        Self {
            keys: known
                .map(|(_, key)| hasher.hash_one(key.as_str()))
                .collect(),
            parts: counts.into_keys().collect(),
            hasher,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &[(u16, &str)], per_part: usize) -> BlockingKeys {
        let keys: Vec<(u16, String)> = keys.iter().map(|(p, key)| (*p, (*key).into())).collect();
        BlockingKeys::default().read(&keys, per_part)
    }

    #[test]
    fn of_a_partition_that_was_gained_every_key_may_block_until_it_was_read() {
        let mut may_block = BlockingKeys::default();
        assert!(!may_block.contains(3, "a"));
        may_block.add_part(3);
        assert!(may_block.contains(3, "a") && may_block.contains(3, "b"));
        assert!(!may_block.contains(4, "a"));
        let may_block = may_block.read(&[(3, "a".to_owned())], 9);
        assert!(may_block.contains(3, "a") && !may_block.contains(3, "b"));
        let mut again = may_block.clone();
        again.add_part(4);
        again.remove_part(4);
        assert!(!again.contains(4, "b"));
    }

    #[test]
    fn of_a_partition_with_more_keys_than_were_read_every_one_may_block() {
        let may_block = read(&[(1, "a"), (2, "b"), (2, "c")], 2);
        assert!(may_block.contains(1, "a") && !may_block.contains(1, "x"));
        assert!(may_block.contains(2, "b") && may_block.contains(2, "x"));
    }

    #[test]
    fn no_more_keys_are_remembered_than_there_is_room_for_and_none_is_missed() {
        let mut may_block = BlockingKeys::default();
        for n in 0..MOST + 10 {
            may_block.add(7, &format!("key {n}"));
        }
        assert_eq!(may_block.keys.len(), MOST);
        assert!((0..MOST + 10).all(|n| may_block.contains(7, &format!("key {n}"))));
        assert!(!may_block.contains(8, "other"));
        assert!(BlockingKeys::per_part(64) * 64 <= MOST);
        assert_eq!(BlockingKeys::per_part(0), MOST);
        assert_eq!(BlockingKeys::per_part(MOST * 2), 1);
    }
}
