//! [`Partition`]: one of the groups into which keys are hashed. Partitions divide ownership between
//! processes. They do not affect order, which is per key.

use std::fmt;

use serde::Serialize;

/// One of the groups into which keys are hashed. A type of its own, so that the compiler does not
/// confuse it with a number of partitions, which is a `u16`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Partition(u16);

impl Partition {
    pub(crate) const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The partition of a key: its murmur3 hash (`x86_32`, seed 0) modulo the number of partitions.
    /// Each stored record has its partition, so the hash and the number must never change.
    pub(crate) fn of(key: &str, count: u16) -> Self {
        let hash = murmur3(key.as_bytes()) % u32::from(count.max(1));
        Self(u16::try_from(hash).unwrap_or(0))
    }

    /// The stored number.
    pub(crate) const fn number(self) -> u16 {
        self.0
    }

    /// The index in a list that has an entry for each partition.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The number alone, as log lines show it.
impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn murmur3(bytes: &[u8]) -> u32 {
    let mut blocks = bytes.chunks_exact(4);
    let mut hash = 0u32;
    for block in &mut blocks {
        if let Ok(block) = <[u8; 4]>::try_from(block) {
            hash ^= scramble(u32::from_le_bytes(block));
            hash = hash.rotate_left(13).wrapping_mul(5);
            hash = hash.wrapping_add(0xe654_6b64);
        }
    }
    let mut tail = [0; 4];
    let rest = blocks.remainder();
    tail[..rest.len()].copy_from_slice(rest);
    hash ^= scramble(u32::from_le_bytes(tail));

    // The algorithm takes the length modulo 2^32.
    hash ^= u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or(0);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

fn scramble(block: u32) -> u32 {
    let product = block.wrapping_mul(0xcc9e_2d51);
    product.rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_murmur3_x86_32() {
        // Published test vectors, seed 0.
        assert_eq!(murmur3(b""), 0);
        assert_eq!(murmur3(b"test"), 0xba6b_d213);
        assert_eq!(murmur3(b"Hello, world!"), 0xc036_3e43);
        assert_eq!(
            murmur3(b"The quick brown fox jumps over the lazy dog"),
            0x2e4f_f723
        );
        assert_eq!(murmur3(&[0xff, 0xff, 0xff, 0xff]), 0x7629_3b50);
        assert_eq!(murmur3(&[0x21, 0x43, 0x65]), 0x7e4a_8634);
    }

    #[test]
    fn keys_spread_evenly() {
        let mut counts = [0u32; 64];
        for key in 0..64_000 {
            counts[Partition::of(&key.to_string(), 64).index()] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn no_number_of_partitions_panics() {
        assert_eq!(Partition::of("key", 0), Partition::new(0));
        assert_eq!(Partition::of("key", 1), Partition::new(0));
        assert!(Partition::of("key", u16::MAX) < Partition::new(u16::MAX));
    }

    #[test]
    fn a_partition_is_written_as_its_number() {
        let partitions = [3, 17].map(Partition::new);
        assert_eq!(format!("{partitions:?}"), "[3, 17]");
        assert_eq!(serde_json::to_string(&partitions).unwrap(), "[3,17]");
    }
}
