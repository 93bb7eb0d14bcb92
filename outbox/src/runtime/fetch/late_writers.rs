//! [`LateWriters`]: from which id to read again. The order of ids is not the order of commits, so a
//! record may appear below the watermark.
//!
//! Every fetch of pending records reads from that id in one statement. A record that was written
//! after a late one of its key is read together with it or not at all, so their order holds.

use std::collections::{BTreeMap, HashSet, VecDeque};

use tokio::time::Instant;

use super::{PagePlan, record_ages::RecordAges};
use crate::{
    record::Partition,
    store::{FetchedRecord, OpenWriters, Page},
};

/// The transactions that may still commit a record with a low id, the lowest such id, and the ended
/// transactions whose records were not read yet.
///
/// A transaction locks the record table before it draws an id. So a transaction that was not among
/// the writers at the last observation has only ids above the highest that had been drawn then. Its
/// rows become visible before its lock is gone: once it is no longer among the writers, one more
/// scan from that id finds all of them. A backlog without open writers is read once: all of its ids
/// had been drawn.
///
/// Only the fetcher writes and reads it. When it is dropped, the next observation starts from zero.
#[derive(Debug, Default)]
pub(crate) struct LateWriters {
    /// The highest id that is known to have been drawn before the last observation. At least the
    /// highest id that had been read.
    highest_drawn: i64,
    groups: VecDeque<WriterGroup>,
    /// For databases that do not name their writers.
    by_age: Option<RecordAges>,
    /// The id, by partition, above which records may have been committed late.
    reread_from: BTreeMap<Partition, i64>,
}

/// Writers that were first seen at the same observation.
#[derive(Debug)]
struct WriterGroup {
    /// They have only ids above this.
    above: i64,
    writers: HashSet<String>,
}

impl LateWriters {
    /// Whether records may still be committed late, so that another fetch makes sense although the
    /// last one read nothing new.
    pub(crate) fn expects_late(&self) -> bool {
        self.by_age.is_some() || !self.groups.is_empty() || !self.reread_from.is_empty()
    }

    /// Notes the writers that are open now, for all partitions. `highest` is the highest id that
    /// was read **before** the writers were; the records are read after that.
    pub(crate) fn observe(
        &mut self,
        partitions: &[Partition],
        highest: i64,
        writers: OpenWriters,
        now: Instant,
    ) {
        let (above, drawn) = match writers {
            OpenWriters::Named {
                transactions,
                highest_drawn,
            } => (self.writers_ended(highest, transactions), highest_drawn),
            OpenWriters::Unnamed { database_time } => {
                let ages = self.by_age.get_or_insert_default();
                (Some(ages.reread_above(database_time, now)), None)
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

    /// The next fetch reads these partitions again from above this id.
    pub(crate) fn reread(&mut self, partitions: &[Partition], above: i64) {
        for partition in partitions {
            let from = self.reread_from.entry(*partition).or_insert(above);
            *from = above.min(*from);
        }
    }

    /// The id above which the writers that ended since the last observation may have records.
    fn writers_ended(&mut self, highest: i64, names: Vec<String>) -> Option<i64> {
        let mut writers: HashSet<String> = names.into_iter().collect();
        // A writer that began and ended since the last observation.
        let unseen = (highest > self.highest_drawn).then_some(self.highest_drawn);
        let mut ended: Vec<i64> = unseen.into_iter().collect();
        for group in &mut self.groups {
            let before = group.writers.len();
            // Each writer is in one group. Those that remain in `writers` are new.
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

    /// The same pages, from a lower id if records may have been committed late. They are read in
    /// one statement, because a record that follows a late one of its key must not be read before
    /// it.
    ///
    /// This includes writers that were open at the observation: they may have ended before the
    /// records are read, and another record of their key may have been written since.
    pub(crate) fn lower(&self, pages: &[Page]) -> Vec<Page> {
        let open = self.groups.iter().map(|group| group.above).min();
        let lower = |page: &Page| {
            let reread_from = self.reread_from.get(&page.partition).copied();
            let lowest = reread_from.into_iter().chain(open).min();
            Page {
                after: lowest.map_or(page.after, |lowest| lowest.min(page.after)),
                ..*page
            }
        };
        pages.iter().map(lower).collect()
    }

    /// These pages were read. Late records below the end of each page were found.
    pub(crate) fn pages_read(&mut self, plan: &PagePlan, rows: &[FetchedRecord]) {
        if let Some(ages) = &mut self.by_age {
            ages.on_read(rows);
        }
        for (page, highest, is_exhausted) in plan.read(rows) {
            if is_exhausted || highest >= page.after {
                self.reread_from.remove(&page.partition);
            } else if let Some(from) = self.reread_from.get_mut(&page.partition) {
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

    const PARTITIONS: [Partition; 2] = [Partition::new(0), Partition::new(1)];

    fn named(writers: &[&str]) -> OpenWriters {
        OpenWriters::Named {
            transactions: writers.iter().map(ToString::to_string).collect(),
            highest_drawn: None,
        }
    }

    /// The id above which partition 0 is read after an observation.
    fn from(late: &mut LateWriters, highest: i64, writers: OpenWriters) -> Option<i64> {
        late.reread_from.clear();
        late.observe(&PARTITIONS, highest, writers, Instant::now());
        late.reread_from.get(&PARTITIONS[0]).copied()
    }

    #[tokio::test]
    async fn after_a_writer_ends_records_are_read_again_from_its_first_possible_id() {
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
    async fn a_backlog_without_writers_is_read_once() {
        let mut late = LateWriters::default();
        let drawn = |writers, drawn| match named(writers) {
            OpenWriters::Named { transactions, .. } => OpenWriters::Named {
                transactions,
                highest_drawn: Some(drawn),
            },
            other => other,
        };
        assert_eq!(from(&mut late, 0, drawn(&[], 500)), None);
        // A backlog is read, and no writer is open.
        assert_eq!(from(&mut late, 100, drawn(&[], 500)), None);
        assert_eq!(from(&mut late, 200, drawn(&["a"], 510)), None);
        // A writer that began since has higher ids than had been drawn.
        assert_eq!(from(&mut late, 300, drawn(&[], 520)), Some(500));
        assert_eq!(from(&mut late, 515, drawn(&[], 520)), None);
        assert_eq!(from(&mut late, 530, drawn(&[], 530)), Some(520));
    }

    /// One step of a test. A writer is also a key: its records have an order.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Begin(u8),
        Draw(u8),
        Commit(u8),
        /// An observation for a fetch of `room` records: of all partitions, or of those that may
        /// have unread records. If no `Read` followed the last observation, that fetch failed.
        Observe {
            room: usize,
            all: bool,
        },
        /// Reads the records, after whatever happened since the observation.
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
        /// Whether the database reports the highest drawn id.
        has_drawn: bool,
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
                transactions: self.open.values().map(|(name, _)| name.clone()).collect(),
                highest_drawn: self.has_drawn.then_some(self.next_id),
            };
            let (highest, now) = (self.watermarks.highest(), Instant::now());
            self.late.observe(&PARTITIONS, highest, writers, now);
        }

        fn read(&mut self) {
            let Some(plan) = self.plan.take() else {
                return;
            };
            let mut rows: Vec<(Partition, i64, u8)> = Vec::new();
            for page in self.late.lower(&plan.pages) {
                let of_page = self.visible.iter().filter(|(id, key)| {
                    PARTITIONS[usize::from(*key % 2)] == page.partition
                        && *id > page.after
                        && !self.found.contains(&(*id, *key))
                });
                let of_page = of_page.map(|(id, key)| (page.partition, *id, *key));
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
        /// However transactions interleave with fetches, no record is lost or read twice, and the
        /// records of one writer are read in order.
        #[test]
        fn late_committers_are_found_in_order(steps in steps(), has_drawn in any::<bool>()) {
            let mut world = World { has_drawn, ..World::default() };
            PARTITIONS.iter().for_each(|partition| world.watermarks.add(*partition));
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
