//! From where to read: the watermark's companion, as in `outbox/src/fetch/late.rs`, with sets as
//! bits and nothing else changed.

use crate::scenario::{PARTS, TRANSACTIONS};

/// Which writers may still bring a low id, and where those that ended were not looked for yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Late {
    /// The highest id that had been seen before the last look.
    highest: u8,
    generations: [Generation; TRANSACTIONS],
    floors: [Option<u8>; PARTS],
}

/// Writers that were first seen at the same look. Without writers it is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Generation {
    above: u8,
    writers: u8,
}

impl Default for Late {
    fn default() -> Self {
        Self {
            highest: 0,
            generations: [Generation::default(); TRANSACTIONS],
            floors: [None; PARTS],
        }
    }
}

impl Late {
    /// Whether there is something to be looked for although nothing new was read.
    #[must_use]
    pub fn possible(&self) -> bool {
        self.generations[0].writers != 0 || self.floors.iter().any(Option::is_some)
    }

    /// Takes a look: `highest` was seen before the writers were asked for.
    pub fn look(&mut self, held: [bool; PARTS], highest: u8, writers: u8) {
        let above = self.ended(highest, writers);
        self.highest = highest;
        for (part, floor) in self.floors.iter_mut().enumerate() {
            if !held[part] {
                *floor = None;
            }
        }
        if let Some(above) = above {
            self.read_again(held, above);
        }
    }

    /// These partitions are to be read again from there.
    pub fn read_again(&mut self, held: [bool; PARTS], above: u8) {
        for (part, floor) in self.floors.iter_mut().enumerate() {
            if held[part] {
                *floor = Some(floor.map_or(above, |floor| floor.min(above)));
            }
        }
    }

    fn ended(&mut self, highest: u8, current: u8) -> Option<u8> {
        let mut above = (highest > self.highest).then_some(self.highest);
        let mut known = 0;
        let mut left = Vec::new();
        for generation in self.generations.iter().filter(|g| g.writers != 0) {
            let still = generation.writers & current;
            if still != generation.writers {
                above = Some(above.map_or(generation.above, |above| above.min(generation.above)));
            }
            if still != 0 {
                known |= still;
                left.push(Generation {
                    above: generation.above,
                    writers: still,
                });
            }
        }
        if current & !known != 0 {
            left.push(Generation {
                above: self.highest,
                writers: current & !known,
            });
        }
        self.generations = [Generation::default(); TRANSACTIONS];
        self.generations[..left.len()].copy_from_slice(&left);
        above
    }

    /// From where this partition is to be read.
    #[must_use]
    pub fn lowered(&self, part: usize, after: u8) -> u8 {
        let open = self.generations.iter().filter(|g| g.writers != 0);
        let open = open.map(|g| g.above).min().unwrap_or(u8::MAX);
        after.min(open).min(self.floors[part].unwrap_or(u8::MAX))
    }

    /// A partition was read; `highest` is the highest id of it, `all` tells whether the page was
    /// not full.
    pub fn read(&mut self, part: usize, after: u8, highest: u8, all: bool) {
        if all || highest >= after {
            self.floors[part] = None;
        } else if let Some(floor) = &mut self.floors[part] {
            *floor = highest.max(*floor);
        }
    }
}
