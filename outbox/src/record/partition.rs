//! The partition of a key. Partitions divide ownership between processes. They do not affect order,
//! which is per key.

/// The partition of a key: its murmur3 hash (`x86_32`, seed 0) modulo the number of partitions.
/// Each stored record has its partition, so the hash and the number must never change.
pub(crate) fn partition_of(key: &str, partitions: u16) -> u16 {
    let hash = murmur3(key.as_bytes()) % u32::from(partitions.max(1));
    u16::try_from(hash).unwrap_or(0)
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
            counts[usize::from(partition_of(&key.to_string(), 64))] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn no_number_of_partitions_panics() {
        assert_eq!(partition_of("key", 0), 0);
        assert_eq!(partition_of("key", 1), 0);
        assert!(partition_of("key", u16::MAX) < u16::MAX);
    }
}
