//! [`Watermarks`]: how far each partition was read. They only save work:
//! [`LateWriters`](super::LateWriters) lowers them, and the sweep ignores them.

use std::{collections::BTreeMap, ops::Bound};

use hashbrown::HashMap;

use crate::{
    record::Partition,
    store::{FetchedRecord, Page},
};

/// The partitions of this process, and up to which id each was read.
///
/// The engine writes it when leases change and after each fetch, and reads it to plan the next one.
/// When it is dropped, everything is read from id 0 again.
#[derive(Debug, Default)]
pub(crate) struct Watermarks {
    partitions: BTreeMap<Partition, Mark>,
    /// The first partition of the last fetch. The next fetch begins with the partition after it, so
    /// that a busy one does not starve the others.
    last_first: Option<Partition>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    after: i64,
    /// Nothing was left above `after` when it was read last.
    is_exhausted: bool,
}

/// The pages of one fetch: at most `per_page` records of each, and at most `limit` in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PagePlan {
    pub(crate) pages: Vec<Page>,
    pub(crate) per_page: usize,
    pub(crate) limit: usize,
}

impl Watermarks {
    pub(crate) fn add(&mut self, partition: Partition) {
        self.partitions.insert(partition, Mark::default());
    }

    pub(crate) fn remove(&mut self, partition: Partition) {
        self.partitions.remove(&partition);
    }

    pub(crate) fn partitions(&self) -> Vec<Partition> {
        self.partitions.keys().copied().collect()
    }

    /// The highest id that was read.
    pub(crate) fn highest(&self) -> i64 {
        let marks = self.partitions.values();
        marks.map(|mark| mark.after).max().unwrap_or(0)
    }

    /// Every partition may have new records.
    pub(crate) fn mark_unread(&mut self) {
        for mark in self.partitions.values_mut() {
            mark.is_exhausted = false;
        }
    }

    /// Whether a partition may have records that were not read.
    pub(crate) fn has_unread(&self) -> bool {
        self.partitions.values().any(|mark| !mark.is_exhausted)
    }

    /// The pages of the next fetch, with room for `room` records: the same share for each partition
    /// that may have unread records.
    pub(crate) fn plan(&self, room: usize) -> Option<PagePlan> {
        let after = self.last_first.map_or(Bound::Unbounded, Bound::Excluded);
        let from_next = self.partitions.range((after, Bound::Unbounded));
        let before = self.last_first.map(|last| self.partitions.range(..=last));
        let pages: Vec<Page> = from_next
            .chain(before.into_iter().flatten())
            .filter(|(_, mark)| !mark.is_exhausted)
            .map(|(partition, mark)| Page {
                partition: *partition,
                after: mark.after,
            })
            .collect();
        if pages.is_empty() || room == 0 {
            return None;
        }
        Some(PagePlan {
            per_page: room.div_ceil(pages.len()),
            limit: room,
            pages,
        })
    }

    /// These rows were read by this plan.
    pub(crate) fn advance(&mut self, plan: &PagePlan, rows: &[FetchedRecord]) {
        for (page, highest, is_exhausted) in plan.read(rows) {
            if let Some(mark) = self.partitions.get_mut(&page.partition) {
                mark.after = mark.after.max(highest);
                mark.is_exhausted = is_exhausted;
            }
        }
        self.last_first = plan.pages.first().map(|page| page.partition);
    }
}

impl PagePlan {
    /// For each page: the highest id that was read, and whether nothing was left above it.
    pub(super) fn read(&self, rows: &[FetchedRecord]) -> impl Iterator<Item = (&Page, i64, bool)> {
        let is_cut_off = rows.len() >= self.limit;
        let mut seen: HashMap<Partition, (usize, i64)> = HashMap::new();
        for row in rows {
            let (count, highest) = seen.entry(row.partition).or_default();
            *count += 1;
            *highest = (*highest).max(row.record.id);
        }
        self.pages.iter().map(move |page| {
            let (count, highest) = seen.get(&page.partition).copied().unwrap_or_default();
            (page, highest, !is_cut_off && count < self.per_page)
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::Record;

    /// A record with this partition and id.
    pub(in crate::runtime::fetch) fn fetched(partition: Partition, id: i64) -> FetchedRecord {
        let record = Record::for_tests(id, "", "");
        FetchedRecord { partition, record }
    }

    const ONE: Partition = Partition::new(1);
    const TWO: Partition = Partition::new(2);

    /// Watermarks of `count` partitions, from number 1 on.
    fn watermarks(count: u16) -> Watermarks {
        let mut watermarks = Watermarks::default();
        (1..=count).for_each(|number| watermarks.add(Partition::new(number)));
        watermarks
    }

    #[test]
    fn room_is_shared_by_partitions_that_may_have_unread_records() {
        let mut watermarks = watermarks(4);
        let plan = watermarks.plan(100).unwrap();
        assert_eq!((plan.pages.len(), plan.per_page, plan.limit), (4, 25, 100));
        let full: Vec<FetchedRecord> = (1..=25).map(|id| fetched(TWO, id)).collect();
        watermarks.advance(&plan, &full);
        let plan = watermarks.plan(100).unwrap();
        let next = Page {
            partition: TWO,
            after: 25,
        };
        assert_eq!(
            (plan.pages.as_slice(), plan.per_page),
            ([next].as_slice(), 100)
        );
        watermarks.advance(&plan, &[]);
        assert_eq!(watermarks.plan(100), None);
        watermarks.mark_unread();
        assert_eq!(watermarks.plan(100).unwrap().pages.len(), 4);
    }

    #[test]
    fn a_partition_that_was_cut_off_is_not_exhausted_and_comes_first_next_time() {
        let mut watermarks = watermarks(2);
        let plan = watermarks.plan(2).unwrap();
        watermarks.advance(&plan, &[fetched(ONE, 7), fetched(ONE, 9)]);
        let plan = watermarks.plan(2).unwrap();
        let partitions: Vec<Partition> = plan.pages.iter().map(|page| page.partition).collect();
        assert_eq!(partitions, [TWO, ONE]);
        assert_eq!(plan.pages[1].after, 9);
    }
}
