//! [`Watermarks`]: how far each partition was read. A hint, never the truth:
//! [`LateWriters`](super::LateWriters) says from where to read again, and the sweep reads everything.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::store::{FetchedRecord, Page};

/// The partitions of this process, and up to which id each was read.
///
/// The engine writes it when leases change and after each fetch, and reads it to plan the next one.
/// When it is dropped, everything is read from the start again.
#[derive(Debug, Default)]
pub(crate) struct Watermarks {
    parts: BTreeMap<u16, Mark>,
    /// Which partition is read first next time, so that a busy one does not starve the others.
    first: u16,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    after: i64,
    /// Nothing was left above `after` when it was read last.
    exhausted: bool,
}

/// The pages of one fetch: at most `per_page` records of each, and at most `limit` in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PagePlan {
    pub(crate) pages: Vec<Page>,
    pub(crate) per_page: usize,
    pub(crate) limit: usize,
}

impl Watermarks {
    pub(crate) fn add(&mut self, part: u16) {
        self.parts.insert(part, Mark::default());
    }

    pub(crate) fn remove(&mut self, part: u16) {
        self.parts.remove(&part);
    }

    pub(crate) fn partitions(&self) -> Vec<u16> {
        self.parts.keys().copied().collect()
    }

    /// The highest id that was seen.
    pub(crate) fn highest(&self) -> i64 {
        let marks = self.parts.values();
        marks.map(|mark| mark.after).max().unwrap_or(0)
    }

    /// There may be something new anywhere.
    pub(crate) fn mark_unread(&mut self) {
        for mark in self.parts.values_mut() {
            mark.exhausted = false;
        }
    }

    /// Whether there may be something to read.
    pub(crate) fn has_unread(&self) -> bool {
        self.parts.values().any(|mark| !mark.exhausted)
    }

    /// What to read with room for that many records: the same share of each partition that may
    /// have something.
    pub(crate) fn plan(&self, room: usize) -> Option<PagePlan> {
        let from_first = self.parts.range(self.first..);
        let before = self.parts.range(..self.first);
        let pages: Vec<Page> = from_first
            .chain(before)
            .filter(|(_, mark)| !mark.exhausted)
            .map(|(part, mark)| Page {
                part: *part,
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

    /// What was read as planned.
    pub(crate) fn advance(&mut self, plan: &PagePlan, rows: &[FetchedRecord]) {
        for (page, highest, exhausted) in plan.read(rows) {
            if let Some(mark) = self.parts.get_mut(&page.part) {
                mark.after = mark.after.max(highest);
                mark.exhausted = exhausted;
            }
        }
        let first = plan.pages.first();
        self.first = first.map_or(0, |page| page.part.wrapping_add(1));
    }
}

impl PagePlan {
    /// Of each page: the highest id that was read, and whether nothing was left above it.
    pub(super) fn read(&self, rows: &[FetchedRecord]) -> impl Iterator<Item = (&Page, i64, bool)> {
        let is_cut_off = rows.len() >= self.limit;
        let mut seen: HashMap<u16, (usize, i64)> = HashMap::new();
        for row in rows {
            let (count, highest) = seen.entry(row.part).or_default();
            *count += 1;
            *highest = (*highest).max(row.record.id);
        }
        self.pages.iter().map(move |page| {
            let (count, highest) = seen.get(&page.part).copied().unwrap_or_default();
            (page, highest, !is_cut_off && count < self.per_page)
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::Record;

    /// A record of which only partition and id matter.
    pub(in crate::runtime::fetch) fn fetched(part: u16, id: i64) -> FetchedRecord {
        let record = Record {
            id,
            event_id: uuid::Uuid::nil(),
            event: String::new(),
            version: 1,
            key: String::new(),
            payload: String::new(),
            headers: BTreeMap::new(),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            max_retries: None,
        };
        FetchedRecord { part, record }
    }

    fn watermarks(parts: &[u16]) -> Watermarks {
        let mut watermarks = Watermarks::default();
        parts.iter().for_each(|part| watermarks.add(*part));
        watermarks
    }

    #[test]
    fn room_is_shared_by_partitions_that_may_have_something() {
        let mut watermarks = watermarks(&[1, 2, 3, 4]);
        let plan = watermarks.plan(100).unwrap();
        assert_eq!((plan.pages.len(), plan.per_page, plan.limit), (4, 25, 100));
        let full: Vec<FetchedRecord> = (1..=25).map(|id| fetched(2, id)).collect();
        watermarks.advance(&plan, &full);
        let plan = watermarks.plan(100).unwrap();
        let next = Page { part: 2, after: 25 };
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
        let mut watermarks = watermarks(&[1, 2]);
        let plan = watermarks.plan(2).unwrap();
        watermarks.advance(&plan, &[fetched(1, 7), fetched(1, 9)]);
        let plan = watermarks.plan(2).unwrap();
        let parts: Vec<u16> = plan.pages.iter().map(|page| page.part).collect();
        assert_eq!(parts, [2, 1]);
        assert_eq!(plan.pages[1].after, 9);
    }
}
