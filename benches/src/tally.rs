//! [`Tally`]: whether every record was handled once, and those of one key in order. Cheap enough to
//! be kept while the clock runs: a bit for each record, a number for each key.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{bail, ensure};
use tokio::sync::Notify;

use crate::progress::Progress;

/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Tally(Arc<Counts>);

struct Counts {
    records: u64,
    keys: u64,
    /// One bit for each record.
    seen: Box<[AtomicU64]>,
    /// For each key the last record, counted from 1.
    last: Box<[AtomicU64]>,
    handled: AtomicU64,
    /// How many somebody waits for.
    wanted: AtomicU64,
    reached: Notify,
    twice: AtomicU64,
    overtaken: AtomicU64,
    unknown: AtomicU64,
}

impl Tally {
    /// For records 0 to `records` of which number `n` has the key `n % keys`.
    pub(crate) fn new(records: u64, keys: u64) -> Self {
        let zeros = |count: u64| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Counts {
            records,
            keys,
            seen: zeros(records.div_ceil(64)),
            last: zeros(keys),
            handled: AtomicU64::new(0),
            wanted: AtomicU64::new(records),
            reached: Notify::new(),
            twice: AtomicU64::new(0),
            overtaken: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
        }))
    }

    /// One was handled, for good.
    pub(crate) fn handled(&self, n: u64, key: u64) {
        let counts = &*self.0;
        let place = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let (Some(seen), Some(last)) =
            (counts.seen.get(place(n / 64)), counts.last.get(place(key)))
        else {
            counts.unknown.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let bit = 1 << (n % 64);
        if seen.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            counts.twice.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if last.swap(n + 1, Ordering::Relaxed) > n {
            counts.overtaken.fetch_add(1, Ordering::Relaxed);
        }
        let handled = counts.handled.fetch_add(1, Ordering::Relaxed) + 1;
        if handled == counts.wanted.load(Ordering::Relaxed) {
            counts.reached.notify_one();
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.handled.load(Ordering::Relaxed)
    }

    /// Until all of them are handled.
    pub(crate) async fn all(&self, progress: &Progress) -> anyhow::Result<()> {
        self.some(self.0.records, progress).await
    }

    /// Until so many are handled.
    pub(crate) async fn some(&self, wanted: u64, progress: &Progress) -> anyhow::Result<()> {
        self.0.wanted.store(wanted, Ordering::Relaxed);
        let mut before = (self.count(), tokio::time::Instant::now());
        loop {
            let now = self.count();
            if now >= wanted {
                return Ok(());
            }
            progress.at(now, wanted);
            if now != before.0 {
                before = (now, tokio::time::Instant::now());
            } else if before.1.elapsed() > PATIENCE {
                bail!("{now} of {wanted} records were handled, and none for a minute: {self}");
            }
            let look = Duration::from_millis(200);
            // The answer is the count itself.
            let _ = tokio::time::timeout(look, self.0.reached.notified()).await;
        }
    }

    /// Every record once, and each key in order.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let complete = self.count() == self.0.records;
        ensure!(complete && self.is_sound(), "a wrong run: {self}");
        Ok(())
    }

    /// Each key from its first record on, in order, without a gap and none twice.
    pub(crate) fn check_beginning(&self) -> anyhow::Result<()> {
        let keys = self.0.keys;
        let last = self.0.last.iter().map(|last| last.load(Ordering::Relaxed));
        let up_to_last: u64 = last.map(|last| last.div_ceil(keys)).sum();
        let gapless = up_to_last == self.count();
        ensure!(
            gapless && self.is_sound(),
            "a wrong run: {up_to_last} are due up to the last of each key; {self}"
        );
        Ok(())
    }

    fn is_sound(&self) -> bool {
        let wrong = [&self.0.twice, &self.0.overtaken, &self.0.unknown];
        wrong.iter().all(|count| count.load(Ordering::Relaxed) == 0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &*self.0;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        write!(
            f,
            "{} of {} records handled, {} of them again, {} after a later one of their key, {} unknown",
            of(&counts.handled),
            counts.records,
            of(&counts.twice),
            of(&counts.overtaken),
            of(&counts.unknown)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally_of(handled: &[u64]) -> Tally {
        let tally = Tally::new(6, 2);
        for n in handled {
            tally.handled(*n, n % 2);
        }
        tally
    }

    #[test]
    fn each_once_and_in_the_order_of_its_key_is_right() {
        tally_of(&[0, 2, 1, 4, 3, 5]).check().unwrap();
    }

    #[test]
    fn a_swapped_pair_of_one_key_is_wrong() {
        let error = tally_of(&[0, 1, 4, 2, 3, 5]).check().unwrap_err();
        assert!(error.to_string().contains("1 after a later one"), "{error}");
    }

    #[test]
    fn a_missing_one_is_wrong() {
        let error = tally_of(&[0, 1, 2, 3, 4]).check().unwrap_err();
        assert!(error.to_string().contains("5 of 6"), "{error}");
    }

    #[test]
    fn one_that_came_twice_is_wrong() {
        let error = tally_of(&[0, 1, 2, 2, 3, 4, 5]).check().unwrap_err();
        assert!(error.to_string().contains("1 of them again"), "{error}");
    }

    #[test]
    fn one_that_was_never_published_is_wrong() {
        let error = tally_of(&[0, 1, 2, 3, 4, 5, 640]).check().unwrap_err();
        assert!(error.to_string().contains("1 unknown"), "{error}");
    }

    #[test]
    fn a_beginning_has_no_gaps() {
        tally_of(&[0, 2, 1]).check_beginning().unwrap();
        assert!(tally_of(&[0, 4, 1]).check_beginning().is_err());
    }
}
