//! [`LateWriters`]: from where to read again. The order of ids is not the order of commits, so a
//! record may appear below the watermark.
//!
//! Every fetch of pending records asks, and reads from there in one statement. A record that was
//! written after a late one of its key is read together with it or not at all, so their order holds.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::runtime::fetch::watermarks::{PagePlan, count_by_partition};
use crate::store::{FetchedRecord, OpenWriters, Page};

/// For databases that do not name their writers: a transaction that ends within this time after it
/// published keeps its place in the order of its keys.
const ORDER_WINDOW: SignedDuration = SignedDuration::from_secs(10);
/// For the same databases: records of a transaction that ends within this time are found within about
/// a second. The sweep finds those of slower transactions.
const FIND_WINDOW: SignedDuration = SignedDuration::from_secs(600);
/// How often the whole [`FIND_WINDOW`] is read again.
const FIND_EVERY: Duration = Duration::from_secs(1);

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
    /// The highest id that had been drawn before the last look, as far as is known: the highest
    /// that had been seen, at least.
    drawn: i64,
    groups: VecDeque<WriterGroup>,
    /// For databases that do not name their writers.
    by_age: Option<RecordAges>,
    /// Partitions with ids above which something may have come late.
    reread_from: BTreeMap<u16, i64>,
}

/// How old the records are up to which id, by the database's clock. A transaction that still brings a
/// lower id has been open for longer.
#[derive(Debug, Default)]
struct RecordAges {
    /// Ids up to this were published before this; both grow.
    steps: VecDeque<(Timestamp, i64)>,
    /// When all that is [`FIND_WINDOW`] was looked for.
    looked: Option<Instant>,
}

/// Writers that were first seen at the same look.
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
        parts: &[u16],
        highest: i64,
        writers: OpenWriters,
        now: Instant,
    ) {
        let mut drawn_now = highest;
        let above = match writers {
            OpenWriters::Named { names, drawn } => {
                drawn_now = drawn_now.max(drawn.unwrap_or(0));
                self.writers_ended(highest, names)
            }
            OpenWriters::Unnamed { clock } => {
                let ages = self.by_age.get_or_insert_default();
                Some(ages.look(clock, now))
            }
            OpenWriters::Serial => None,
        };
        self.drawn = drawn_now;
        self.reread_from.retain(|part, _| parts.contains(part));
        if let Some(above) = above {
            self.reread(parts, above);
        }
    }

    /// These partitions are to be read again from there.
    pub(crate) fn reread(&mut self, parts: &[u16], above: i64) {
        for part in parts {
            let floor = self.reread_from.entry(*part).or_insert(above);
            *floor = above.min(*floor);
        }
    }

    /// The lowest id that a writer can have brought which ended since the last look.
    fn writers_ended(&mut self, highest: i64, writers: Vec<String>) -> Option<i64> {
        let current: HashSet<String> = writers.into_iter().collect();
        // Whoever came and ended since the last look.
        let mut above = (highest > self.drawn).then_some(self.drawn);
        let mut known: HashSet<&String> = HashSet::new();
        for group in &mut self.groups {
            let before = group.writers.len();
            group.writers.retain(|writer| current.contains(writer));
            if group.writers.len() < before {
                above = Some(above.map_or(group.above, |above| above.min(group.above)));
            }
        }
        self.groups.retain(|group| !group.writers.is_empty());
        for group in &self.groups {
            known.extend(&group.writers);
        }
        let new = current.iter().filter(|writer| !known.contains(*writer));
        let writers: HashSet<String> = new.cloned().collect();
        if !writers.is_empty() {
            self.groups.push_back(WriterGroup {
                above: self.drawn,
                writers,
            });
        }
        above
    }

    /// The same pages, from a lower id on where something may have come late. In the same
    /// statement: a record that follows a late one of its key must not be read before it.
    ///
    /// That holds for writers too that were still there at the look: they may have ended before
    /// the reading, and another record of their key may have been written since.
    pub(crate) fn lower(&self, pages: &[Page]) -> Vec<Page> {
        let open = self.groups.iter().map(|group| group.above);
        let open = open.min().unwrap_or(i64::MAX);
        let lower = |page: &Page| {
            let floor = self
                .reread_from
                .get(&page.part)
                .copied()
                .unwrap_or(i64::MAX);
            Page {
                after: page.after.min(floor).min(open),
                ..*page
            }
        };
        pages.iter().map(lower).collect()
    }

    /// What was read of these pages: what is below its end was found.
    pub(crate) fn pages_read(&mut self, plan: &PagePlan, rows: &[FetchedRecord]) {
        if let Some(ages) = &mut self.by_age {
            ages.read(rows);
        }
        let seen = count_by_partition(rows);
        for page in &plan.pages {
            let (count, highest) = seen.get(&page.part).copied().unwrap_or_default();
            let all = rows.len() < plan.limit && count < plan.per_page;
            if all || highest >= page.after {
                self.reread_from.remove(&page.part);
            } else if let Some(floor) = self.reread_from.get_mut(&page.part) {
                *floor = highest.max(*floor);
            }
        }
    }
}

impl RecordAges {
    /// The id above which to read again.
    fn look(&mut self, clock: Timestamp, now: Instant) -> i64 {
        let all = self
            .looked
            .is_none_or(|looked| now.duration_since(looked) >= FIND_EVERY);
        if all {
            self.looked = Some(now);
        }
        let before = |age| clock.checked_sub(age).unwrap_or(Timestamp::MIN);
        let oldest = before(FIND_WINDOW);
        // The last step that is old enough stays.
        while self.steps.get(1).is_some_and(|step| step.0 <= oldest) {
            self.steps.pop_front();
        }
        let old = if all { oldest } else { before(ORDER_WINDOW) };
        let steps = self.steps.iter().take_while(|step| step.0 <= old);
        steps.last().map_or(0, |step| step.1)
    }

    fn read(&mut self, rows: &[FetchedRecord]) {
        for FetchedRecord { record, .. } in rows {
            let (at, id) = (record.created_at, record.id);
            let Some(last) = self.steps.back_mut() else {
                self.steps.push_back((at, id));
                continue;
            };
            // A step per second is fine enough.
            let second = SignedDuration::from_secs(1);
            match at.duration_since(last.0) > second && id > last.1 {
                true => self.steps.push_back((at, id)),
                false => last.1 = id.max(last.1),
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

    fn known(writers: &[&str]) -> OpenWriters {
        OpenWriters::Named {
            names: writers.iter().map(ToString::to_string).collect(),
            drawn: None,
        }
    }

    /// From where partition 0 is read after a look.
    fn from(late: &mut LateWriters, highest: i64, writers: OpenWriters) -> Option<i64> {
        late.reread_from.clear();
        late.observe(&PARTS, highest, writers, Instant::now());
        late.reread_from.get(&0).copied()
    }

    #[tokio::test]
    async fn a_writer_that_ended_is_read_again_from_where_it_began() {
        let mut late = LateWriters::default();
        assert_eq!(from(&mut late, 100, known(&["a"])), Some(0));
        assert_eq!(from(&mut late, 200, known(&["a", "b"])), Some(100));
        assert_eq!(from(&mut late, 200, known(&["a", "b"])), None);
        assert_eq!(from(&mut late, 200, known(&["a"])), Some(100));
        assert_eq!(from(&mut late, 300, known(&["a"])), Some(200));
        assert_eq!(from(&mut late, 300, known(&[])), Some(0));
        late.reread_from.clear();
        assert!(!late.expects_late());
    }

    #[tokio::test]
    async fn what_had_been_drawn_before_nobody_brings_anew() {
        let mut late = LateWriters::default();
        let drawn = |writers, drawn| match known(writers) {
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
        // Who came since brings more than had been drawn.
        assert_eq!(from(&mut late, 300, drawn(&[], 520)), Some(500));
        assert_eq!(from(&mut late, 515, drawn(&[], 520)), None);
        assert_eq!(from(&mut late, 530, drawn(&[], 530)), Some(520));
    }

    #[tokio::test(start_paused = true)]
    async fn without_names_the_age_of_records_says_from_where() {
        let mut late = LateWriters::default();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let by_age = |second| OpenWriters::Unnamed { clock: at(second) };
        let of_age = |id, second| {
            let FetchedRecord { part, mut record } = fetched(0, id);
            record.created_at = at(second);
            FetchedRecord { part, record }
        };
        // The first look of each second goes back ten minutes, the others ten seconds.
        assert_eq!(from(&mut late, 0, by_age(1000)), Some(0));
        let plan = PagePlan {
            pages: Vec::new(),
            per_page: 9,
            limit: 9,
        };
        late.pages_read(
            &plan,
            &[
                of_age(7, 980),
                of_age(5, 979),
                of_age(20, 989),
                of_age(30, 995),
            ],
        );
        assert_eq!(from(&mut late, 30, by_age(1000)), Some(20));
        assert_eq!(from(&mut late, 30, by_age(1006)), Some(30));
        assert_eq!(from(&mut late, 30, by_age(991)), Some(7));
        tokio::time::advance(FIND_EVERY).await;
        assert_eq!(from(&mut late, 30, by_age(1000)), Some(0));
        tokio::time::advance(FIND_EVERY).await;
        assert_eq!(from(&mut late, 30, by_age(1590)), Some(20));
        assert!(late.expects_late());
    }

    /// What can happen, in any order. A writer is also a key: what it writes is in order.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Begin(u8),
        Draw(u8),
        Commit(u8),
        /// A look, for a reading with so much room. All partitions, or hungry ones. If the last
        /// look has not been followed by its reading, that failed.
        Look {
            room: usize,
            all: bool,
        },
        /// The reading, after whatever has happened since the look.
        Read,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let writer = 0u8..6;
        let step = prop_oneof![
            3 => writer.clone().prop_map(Step::Begin),
            4 => writer.clone().prop_map(Step::Draw),
            2 => writer.prop_map(Step::Commit),
            3 => (1usize..6, any::<bool>()).prop_map(|(room, all)| Step::Look { room, all }),
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
        marks: Watermarks,
        late: LateWriters,
        plan: Option<PagePlan>,
    }

    impl World {
        fn look(&mut self, room: usize, all: bool) {
            if all {
                self.marks.mark_unread();
            }
            self.plan = self.marks.plan(room);
            if self.plan.is_none() {
                return;
            }
            let writers = OpenWriters::Named {
                names: self.open.values().map(|(name, _)| name.clone()).collect(),
                drawn: self.tells_drawn.then_some(self.next_id),
            };
            let (highest, now) = (self.marks.highest(), Instant::now());
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
            self.marks.advance(&plan, &read);
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
                Step::Look { room, all } => self.look(room, all),
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
            PARTS.iter().for_each(|part| world.marks.add(*part));
            for step in steps {
                world.step(step);
            }
            (0..6).for_each(|writer| world.step(Step::Commit(writer)));
            for _ in 0..300 {
                world.look(5, true);
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
