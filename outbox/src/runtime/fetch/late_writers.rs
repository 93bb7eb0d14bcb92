//! [`LateWriters`]: from where to read again. The order of ids is not the order of commits, so a
//! record may appear below the watermark.
//!
//! Every fetch of pending records asks, and reads from there in one statement. A record that was
//! written after a late one of its key is read together with it or not at all, so their order holds.

use std::collections::{BTreeMap, HashSet, VecDeque};

use tokio::time::Instant;

use super::{PagePlan, record_ages::RecordAges};
use crate::store::{FetchedRecord, OpenWriters, Page};

/// Which transactions may still bring a record with a low id, how low, and which ended ones were not
/// looked for yet.
///
/// A transaction locks the record table before it draws an id. So a transaction that was not among the
/// writers at the last observation brings only ids above the highest that had been drawn then. Its
/// rows become visible before its lock is gone: once it is no longer among the writers, one more scan
/// from there finds all of them. A backlog to which nobody adds is read once: all of its ids had been
/// drawn.
///
/// Only the fetcher writes and reads it. When it is dropped, the next observation starts from zero.
#[derive(Debug, Default)]
pub(crate) struct LateWriters {
    /// The highest id that had been drawn before the last observation, as far as is known: the
    /// highest that had been seen, at least.
    highest_drawn: i64,
    groups: VecDeque<WriterGroup>,
    /// For databases that do not name their writers.
    by_age: Option<RecordAges>,
    /// Partitions with ids above which something may have come late.
    reread_from: BTreeMap<u16, i64>,
}

/// Writers that were first seen at the same observation.
#[derive(Debug)]
struct WriterGroup {
    /// They bring ids above this only.
    above: i64,
    writers: HashSet<String>,
}

impl LateWriters {
    /// Whether records may still come late, so that reading again makes sense although nothing new was
    /// read.
    pub(crate) fn expects_late(&self) -> bool {
        self.by_age.is_some() || !self.groups.is_empty() || !self.reread_from.is_empty()
    }

    /// The writers that are open now, for all partitions. `highest` is the highest id that was seen
    /// **before** the writers were asked for; the records are read after that.
    pub(crate) fn observe(
        &mut self,
        partitions: &[u16],
        highest: i64,
        writers: OpenWriters,
        now: Instant,
    ) {
        let (above, drawn) = match writers {
            OpenWriters::Named { names, drawn } => (self.writers_ended(highest, names), drawn),
            OpenWriters::Unnamed { clock } => {
                let ages = self.by_age.get_or_insert_default();
                (Some(ages.reread_above(clock, now)), None)
            }
            OpenWriters::Serial => (None, None),
        };
        self.highest_drawn = highest.max(drawn.unwrap_or(0));
        self.reread_from
            .retain(|partition, _| partitions.contains(partition));
        if let Some(above) = above {
            self.reread(partitions, above);
        }
    }

    /// These partitions are to be read again from there.
    pub(crate) fn reread(&mut self, partitions: &[u16], above: i64) {
        for partition in partitions {
            let from = self.reread_from.entry(*partition).or_insert(above);
            *from = above.min(*from);
        }
    }

    /// The lowest id that a writer can have brought which ended since the last observation.
    fn writers_ended(&mut self, highest: i64, names: Vec<String>) -> Option<i64> {
        let mut writers: HashSet<String> = names.into_iter().collect();
        // A writer that came and ended since the last observation.
        let unseen = (highest > self.highest_drawn).then_some(self.highest_drawn);
        let mut ended: Vec<i64> = unseen.into_iter().collect();
        for group in &mut self.groups {
            let before = group.writers.len();
            // Each writer is in one group. Those that are left at the end are new.
            group.writers.retain(|writer| writers.remove(writer));
            if group.writers.len() < before {
                ended.push(group.above);
            }
        }
        self.groups.retain(|group| !group.writers.is_empty());
        if !writers.is_empty() {
            let above = self.highest_drawn;
            self.groups.push_back(WriterGroup { above, writers });
        }
        ended.into_iter().min()
    }

    /// The same pages, from a lower id on where something may have come late. In the same
    /// statement: a record that follows a late one of its key must not be read before it.
    ///
    /// That holds for writers too that were open at the observation: they may have ended before
    /// the reading, and another record of their key may have been written since.
    pub(crate) fn lower(&self, pages: &[Page]) -> Vec<Page> {
        let open = self.groups.iter().map(|group| group.above).min();
        let lower = |page: &Page| {
            let reread_from = self.reread_from.get(&page.part).copied();
            let lowest = reread_from.into_iter().chain(open).min();
            Page {
                after: lowest.map_or(page.after, |lowest| lowest.min(page.after)),
                ..*page
            }
        };
        pages.iter().map(lower).collect()
    }

    /// What was read of these pages: what is below its end was found.
    pub(crate) fn pages_read(&mut self, plan: &PagePlan, rows: &[FetchedRecord]) {
        if let Some(ages) = &mut self.by_age {
            ages.on_read(rows);
        }
        for (page, highest, is_exhausted) in plan.read(rows) {
            if is_exhausted || highest >= page.after {
                self.reread_from.remove(&page.part);
            } else if let Some(from) = self.reread_from.get_mut(&page.part) {
                *from = highest.max(*from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::runtime::fetch::{Watermarks, watermarks::tests::fetched};

    const PARTS: [u16; 2] = [0, 1];

    fn named(writers: &[&str]) -> OpenWriters {
        OpenWriters::Named {
            names: writers.iter().map(ToString::to_string).collect(),
            drawn: None,
        }
    }

    /// From where partition 0 is read after an observation.
    fn from(late: &mut LateWriters, highest: i64, writers: OpenWriters) -> Option<i64> {
        late.reread_from.clear();
        late.observe(&PARTS, highest, writers, Instant::now());
        late.reread_from.get(&0).copied()
    }

    #[tokio::test]
    async fn a_writer_that_ended_is_read_again_from_where_it_began() {
        let mut late = LateWriters::default();
        assert_eq!(from(&mut late, 100, named(&["a"])), Some(0));
        assert_eq!(from(&mut late, 200, named(&["a", "b"])), Some(100));
        assert_eq!(from(&mut late, 200, named(&["a", "b"])), None);
        assert_eq!(from(&mut late, 200, named(&["a"])), Some(100));
        assert_eq!(from(&mut late, 300, named(&["a"])), Some(200));
        assert_eq!(from(&mut late, 300, named(&[])), Some(0));
        late.reread_from.clear();
        assert!(!late.expects_late());
    }

    #[tokio::test]
    async fn what_had_been_drawn_before_nobody_brings_anew() {
        let mut late = LateWriters::default();
        let drawn = |writers, drawn| match named(writers) {
            OpenWriters::Named { names, .. } => OpenWriters::Named {
                names,
                drawn: Some(drawn),
            },
            other => other,
        };
        assert_eq!(from(&mut late, 0, drawn(&[], 500)), None);
        // A backlog is read, and nobody writes.
        assert_eq!(from(&mut late, 100, drawn(&[], 500)), None);
        assert_eq!(from(&mut late, 200, drawn(&["a"], 510)), None);
        // A writer that came since brings higher ids than had been drawn.
        assert_eq!(from(&mut late, 300, drawn(&[], 520)), Some(500));
        assert_eq!(from(&mut late, 515, drawn(&[], 520)), None);
        assert_eq!(from(&mut late, 530, drawn(&[], 530)), Some(520));
    }

    /// What can happen, in any order. A writer is also a key: what it writes is in order.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Begin(u8),
        Draw(u8),
        Commit(u8),
        /// An observation, for a reading with so much room: of all partitions, or of those that
        /// have something unread. If no reading followed the last observation, that reading failed.
        Observe {
            room: usize,
            all: bool,
        },
        /// The reading, after whatever has happened since the observation.
        Read,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let writer = 0u8..6;
        let step = prop_oneof![
            3 => writer.clone().prop_map(Step::Begin),
            4 => writer.clone().prop_map(Step::Draw),
            2 => writer.prop_map(Step::Commit),
            3 => (1usize..6, any::<bool>()).prop_map(|(room, all)| Step::Observe { room, all }),
            3 => Just(Step::Read),
        ];
        prop::collection::vec(step, 1..150)
    }

    /// A database with transactions, and what was read from it.
    #[derive(Default)]
    struct World {
        next_id: i64,
        /// Whether it says which ids have been drawn.
        tells_drawn: bool,
        next_name: u32,
        open: BTreeMap<u8, (String, Vec<(i64, u8)>)>,
        visible: BTreeSet<(i64, u8)>,
        /// In the order of reading.
        found: Vec<(i64, u8)>,
        watermarks: Watermarks,
        late: LateWriters,
        plan: Option<PagePlan>,
    }

    impl World {
        fn observe(&mut self, room: usize, all: bool) {
            if all {
                self.watermarks.mark_unread();
            }
            self.plan = self.watermarks.plan(room);
            if self.plan.is_none() {
                return;
            }
            let writers = OpenWriters::Named {
                names: self.open.values().map(|(name, _)| name.clone()).collect(),
                drawn: self.tells_drawn.then_some(self.next_id),
            };
            let (highest, now) = (self.watermarks.highest(), Instant::now());
            self.late.observe(&PARTS, highest, writers, now);
        }

        fn read(&mut self) {
            let Some(plan) = self.plan.take() else {
                return;
            };
            let mut rows: Vec<(u16, i64, u8)> = Vec::new();
            for page in self.late.lower(&plan.pages) {
                let of_page = self.visible.iter().filter(|(id, key)| {
                    u16::from(*key % 2) == page.part
                        && *id > page.after
                        && !self.found.contains(&(*id, *key))
                });
                let of_page = of_page.map(|(id, key)| (page.part, *id, *key));
                rows.extend(of_page.take(plan.per_page));
            }
            rows.truncate(plan.limit);
            let read: Vec<FetchedRecord> = rows.iter().map(|row| fetched(row.0, row.1)).collect();
            self.late.pages_read(&plan, &read);
            self.watermarks.advance(&plan, &read);
            self.found.extend(rows.iter().map(|row| (row.1, row.2)));
        }

        fn step(&mut self, step: Step) {
            match step {
                Step::Begin(writer) => {
                    self.next_name += 1;
                    let name = self.next_name.to_string();
                    self.open.entry(writer).or_insert((name, Vec::new()));
                }
                Step::Draw(writer) => {
                    if let Some((_, ids)) = self.open.get_mut(&writer) {
                        self.next_id += 1;
                        ids.push((self.next_id, writer));
                    }
                }
                Step::Commit(writer) => {
                    let ended = self.open.remove(&writer);
                    self.visible
                        .extend(ended.into_iter().flat_map(|(_, ids)| ids));
                }
                Step::Observe { room, all } => self.observe(room, all),
                Step::Read => self.read(),
            }
        }
    }

    proptest! {
        /// However transactions interleave with fetches: nothing is lost or read twice, and what
        /// one writer wrote is read in order.
        #[test]
        fn late_committers_are_found_in_order(steps in steps(), tells_drawn in any::<bool>()) {
            let mut world = World { tells_drawn, ..World::default() };
            PARTS.iter().for_each(|part| world.watermarks.add(*part));
            for step in steps {
                world.step(step);
            }
            (0..6).for_each(|writer| world.step(Step::Commit(writer)));
            for _ in 0..300 {
                world.observe(5, true);
                world.read();
            }
            let all: BTreeSet<(i64, u8)> = world.found.iter().copied().collect();
            prop_assert_eq!(all.len(), world.found.len());
            prop_assert_eq!(&all, &world.visible);
            for writer in 0..6 {
                let of_writer: Vec<i64> = world.found.iter()
                    .filter(|(_, key)| *key == writer).map(|(id, _)| *id).collect();
                prop_assert!(of_writer.is_sorted(), "{:?}", of_writer);
            }
            prop_assert!(!world.late.expects_late());
        }
    }
}
