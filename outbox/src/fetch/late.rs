//! Late committers: the order of ids is not the order of commits, so a record may appear below
//! what was read already. This says from where to read again.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use crate::store::Writers;

/// Where the database does not name its writers, ids that were drawn longer ago than this are
/// left to the slow sweep.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Which transactions may still bring a record with a low id, and how low.
///
/// A transaction locks the record table before it draws an id, so one that was not among the
/// writers at the last look brings only ids above the highest that had been seen then. When it
/// ends, its rows can be seen before its lock is gone: one more scan from there finds them all.
///
/// Written and read by the fetcher only. When it is dropped, the next look starts from zero.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// The highest id that had been seen before the last look.
    highest: i64,
    generations: VecDeque<Generation>,
    /// For databases that do not name their writers: what was the highest id when.
    history: VecDeque<(Instant, i64)>,
    unknown: bool,
}

/// Writers that were first seen at the same look.
#[derive(Debug)]
struct Generation {
    /// They bring ids above this only.
    above: i64,
    writers: HashSet<String>,
}

impl Late {
    /// Whether a record may still be late although nothing was read since the last look.
    pub(crate) fn possible(&self) -> bool {
        self.unknown || !self.generations.is_empty()
    }

    /// Takes a look: `highest` is the highest id that was seen **before** the writers were asked
    /// for. Returns the id above which to read again, after that.
    pub(crate) fn look(&mut self, highest: i64, writers: Writers, now: Instant) -> Option<i64> {
        let last = std::mem::replace(&mut self.highest, highest);
        let current: HashSet<String> = match writers {
            Writers::Known(writers) => writers.into_iter().collect(),
            Writers::InOrder => return None,
            Writers::Unknown => return Some(self.by_time(highest, now)),
        };
        // Whoever came and ended since the last look.
        let mut above = (highest > last).then_some(last);
        let mut known: HashSet<String> = HashSet::new();
        for generation in &mut self.generations {
            let before = generation.writers.len();
            generation.writers.retain(|writer| current.contains(writer));
            if generation.writers.len() < before {
                above = Some(above.map_or(generation.above, |above| above.min(generation.above)));
            }
            known.extend(generation.writers.iter().cloned());
        }
        self.generations
            .retain(|generation| !generation.writers.is_empty());
        let writers: HashSet<String> = current.difference(&known).cloned().collect();
        if !writers.is_empty() {
            self.generations.push_back(Generation {
                above: last,
                writers,
            });
        }
        above
    }

    fn by_time(&mut self, highest: i64, now: Instant) -> i64 {
        self.unknown = true;
        self.history.push_back((now, highest));
        let is_old = |(at, _): &(Instant, i64)| now.duration_since(*at) > REMEMBERED;
        // The first that is left has to be older, or there is none: then from zero.
        while self.history.get(1).is_some_and(is_old) {
            self.history.pop_front();
        }
        match self.history.front() {
            Some(first) if is_old(first) => first.1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn known(writers: &[&str]) -> Writers {
        Writers::Known(writers.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn a_writer_that_ended_is_read_again_from_where_it_began() {
        let (mut late, now) = (Late::default(), Instant::now());
        assert_eq!(late.look(100, known(&["a"]), now), Some(0));
        assert_eq!(late.look(200, known(&["a", "b"]), now), Some(100));
        assert_eq!(late.look(200, known(&["a", "b"]), now), None);
        assert_eq!(late.look(200, known(&["a"]), now), Some(100));
        assert_eq!(late.look(300, known(&["a"]), now), Some(200));
        assert_eq!(late.look(300, known(&[]), now), Some(0));
        assert!(!late.possible());
    }

    #[tokio::test(start_paused = true)]
    async fn without_names_the_floor_is_ten_minutes_old() {
        let mut late = Late::default();
        assert_eq!(late.look(100, Writers::Unknown, Instant::now()), Some(0));
        tokio::time::advance(REMEMBERED + Duration::from_secs(1)).await;
        assert_eq!(late.look(200, Writers::Unknown, Instant::now()), Some(100));
        tokio::time::advance(REMEMBERED + Duration::from_secs(1)).await;
        assert_eq!(late.look(300, Writers::Unknown, Instant::now()), Some(200));
        assert!(late.possible());
    }

    /// What can happen between two looks.
    #[derive(Debug, Clone)]
    enum Step {
        Begin(u8),
        Draw(u8),
        Commit(u8),
        /// The fetcher reads everything that can be seen above its watermark.
        Read,
        Look,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let writer = 0u8..6;
        let step = prop_oneof![
            writer.clone().prop_map(Step::Begin),
            writer.clone().prop_map(Step::Draw),
            writer.clone().prop_map(Step::Draw),
            writer.prop_map(Step::Commit),
            Just(Step::Read),
            Just(Step::Look),
        ];
        prop::collection::vec(step, 1..120)
    }

    proptest! {
        /// However transactions interleave with reads and looks: once all have ended, one read
        /// and one look have found every record.
        #[test]
        fn no_record_is_lost(steps in steps()) {
            let mut late = Late::default();
            let now = Instant::now();
            let (mut next_id, mut next_name) = (0i64, 0u32);
            let mut open: BTreeMap<u8, (String, Vec<i64>)> = BTreeMap::new();
            let mut visible: BTreeSet<i64> = BTreeSet::new();
            let mut found: BTreeSet<i64> = BTreeSet::new();
            let mut watermark = 0i64;
            let close: Vec<Step> = (0..6).map(Step::Commit).chain([Step::Read, Step::Look]).collect();
            for step in steps.into_iter().chain(close) {
                match step {
                    Step::Begin(writer) => {
                        open.entry(writer).or_insert_with(|| {
                            next_name += 1;
                            (next_name.to_string(), Vec::new())
                        });
                    }
                    Step::Draw(writer) => if let Some((_, ids)) = open.get_mut(&writer) {
                        next_id += 1;
                        ids.push(next_id);
                    },
                    Step::Commit(writer) => if let Some((_, ids)) = open.remove(&writer) {
                        visible.extend(ids);
                    },
                    Step::Read => {
                        found.extend(visible.range(watermark + 1..));
                        watermark = watermark.max(visible.last().copied().unwrap_or(0));
                    }
                    Step::Look => {
                        let highest = watermark;
                        let writers = open.values().map(|(name, _)| name.clone()).collect();
                        if let Some(above) = late.look(highest, Writers::Known(writers), now) {
                            found.extend(visible.iter().filter(|id| (above + 1..=watermark).contains(*id)));
                        }
                    }
                }
            }
            prop_assert_eq!(found, visible);
        }
    }
}
