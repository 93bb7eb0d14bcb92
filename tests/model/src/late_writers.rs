//! From where to read again, as in `outbox/src/runtime/fetch/late_writers.rs`, with sets as bits and
//! nothing else changed.

use crate::scenario::{PARTITIONS, TRANSACTIONS};

/// The writers that may still bring a low id, and from where to read again after one has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LateWriters {
    /// The highest id that the process had read before it last asked for the writers.
    highest: u8,
    groups: [WriterGroup; TRANSACTIONS],
    reread_from: [Option<u8>; PARTITIONS],
}

/// Writers that the same question found first. A group without writers is no group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct WriterGroup {
    above: u8,
    writers: u8,
}

impl Default for LateWriters {
    fn default() -> Self {
        Self {
            highest: 0,
            groups: [WriterGroup::default(); TRANSACTIONS],
            reread_from: [None; PARTITIONS],
        }
    }
}

impl LateWriters {
    /// Whether a record may be committed below what was read.
    #[must_use]
    pub fn expects_late(&self) -> bool {
        self.groups[0].writers != 0 || self.reread_from.iter().any(Option::is_some)
    }

    /// The process asked for the writers, after it had read up to `highest`.
    pub fn observe(&mut self, holds: [bool; PARTITIONS], highest: u8, writers: u8) {
        let above = self.writers_ended(highest, writers);
        self.highest = highest;
        for (partition, floor) in self.reread_from.iter_mut().enumerate() {
            if !holds[partition] {
                *floor = None;
            }
        }
        if let Some(above) = above {
            self.reread(holds, above);
        }
    }

    /// These partitions are to be read again from above this id.
    pub fn reread(&mut self, holds: [bool; PARTITIONS], above: u8) {
        for (partition, floor) in self.reread_from.iter_mut().enumerate() {
            if holds[partition] {
                *floor = Some(floor.map_or(above, |floor| floor.min(above)));
            }
        }
    }

    fn writers_ended(&mut self, highest: u8, current: u8) -> Option<u8> {
        let mut above = (highest > self.highest).then_some(self.highest);
        let mut known = 0;
        let mut left = Vec::new();
        for group in self.groups.iter().filter(|g| g.writers != 0) {
            let still = group.writers & current;
            if still != group.writers {
                above = Some(above.map_or(group.above, |above| above.min(group.above)));
            }
            if still != 0 {
                known |= still;
                left.push(WriterGroup {
                    above: group.above,
                    writers: still,
                });
            }
        }
        if current & !known != 0 {
            left.push(WriterGroup {
                above: self.highest,
                writers: current & !known,
            });
        }
        self.groups = [WriterGroup::default(); TRANSACTIONS];
        self.groups[..left.len()].copy_from_slice(&left);
        above
    }

    /// From where this partition is to be read.
    #[must_use]
    pub fn lower(&self, partition: usize, after: u8) -> u8 {
        let open = self.groups.iter().filter(|g| g.writers != 0);
        let open = open.map(|g| g.above).min().unwrap_or(u8::MAX);
        after
            .min(open)
            .min(self.reread_from[partition].unwrap_or(u8::MAX))
    }

    /// A partition was read; `highest` is the highest id of it, `all` tells whether the page was
    /// not full.
    pub fn page_read(&mut self, partition: usize, after: u8, highest: u8, all: bool) {
        if all || highest >= after {
            self.reread_from[partition] = None;
        } else if let Some(floor) = &mut self.reread_from[partition] {
            *floor = highest.max(*floor);
        }
    }
}
