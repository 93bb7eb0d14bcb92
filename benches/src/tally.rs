//! [`Tally`]: checks that every record was handled once, and the records of each key in order. It is
//! cheap enough for measured code: one bit per record and one number per key.

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

/// A run fails if no record is handled for this time.
const MAX_SILENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Tally(Arc<Counts>);

struct Counts {
    records: u64,
    keys: u64,
    /// One bit for each record.
    seen: Box<[AtomicU64]>,
    /// The number of the last record of each key, plus 1.
    last: Box<[AtomicU64]>,
    handled: AtomicU64,
    /// The count that `some` waits for.
    wanted: AtomicU64,
    reached: Notify,
    twice: AtomicU64,
    overtaken: AtomicU64,
    unknown: AtomicU64,
}

impl Tally {
    /// A tally of `records` records, of which number `n` has the key `n % keys`.
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

    /// Notes that a record was handled.
    pub(crate) fn handled(&self, n: u64, key: u64) {
        let counts = &*self.0;
        let index = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let (Some(seen), Some(last)) =
            (counts.seen.get(index(n / 64)), counts.last.get(index(key)))
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

    /// Waits until all records are handled.
    pub(crate) async fn all(&self, progress: &Progress) -> anyhow::Result<()> {
        self.some(self.0.records, progress).await
    }

    /// Waits until `wanted` records are handled.
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
            } else if before.1.elapsed() > MAX_SILENCE {
                bail!("{now} of {wanted} records were handled, and none in the last 60 s: {self}");
            }
            let interval = Duration::from_millis(200);
            // The loop reads the count itself, so a timeout is no error.
            let _ = tokio::time::timeout(interval, self.0.reached.notified()).await;
        }
    }

    /// Fails unless every record was handled once, and the records of each key in order.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let complete = self.count() == self.0.records;
        ensure!(complete && self.has_no_errors(), "a wrong run: {self}");
        Ok(())
    }

    /// Fails unless the handled records of each key are its first ones, once and in order.
    pub(crate) fn check_beginning(&self) -> anyhow::Result<()> {
        let keys = self.0.keys;
        let last = self.0.last.iter().map(|last| last.load(Ordering::Relaxed));
        let up_to_last: u64 = last.map(|last| last.div_ceil(keys)).sum();
        let gapless = up_to_last == self.count();
        ensure!(
            gapless && self.has_no_errors(),
            "a wrong run: {up_to_last} records are expected up to the last of each key; {self}"
        );
        Ok(())
    }

    fn has_no_errors(&self) -> bool {
        let wrong = [&self.0.twice, &self.0.overtaken, &self.0.unknown];
        wrong.iter().all(|count| count.load(Ordering::Relaxed) == 0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &*self.0;
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        write!(
            f,
            "{} of {} records handled, {} of them twice, {} after a later record of their key, {} unknown",
            value(&counts.handled),
            counts.records,
            value(&counts.twice),
            value(&counts.overtaken),
            value(&counts.unknown)
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
    fn a_run_with_each_record_once_and_in_order_is_right() {
        tally_of(&[0, 2, 1, 4, 3, 5]).check().unwrap();
    }

    #[test]
    fn a_swapped_pair_of_one_key_is_wrong() {
        let error = tally_of(&[0, 1, 4, 2, 3, 5]).check().unwrap_err();
        assert!(
            error.to_string().contains("1 after a later record"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_record_is_wrong() {
        let error = tally_of(&[0, 1, 2, 3, 4]).check().unwrap_err();
        assert!(error.to_string().contains("5 of 6"), "{error}");
    }

    #[test]
    fn a_record_that_was_handled_twice_is_wrong() {
        let error = tally_of(&[0, 1, 2, 2, 3, 4, 5]).check().unwrap_err();
        assert!(error.to_string().contains("1 of them twice"), "{error}");
    }

    #[test]
    fn a_record_that_was_never_published_is_wrong() {
        let error = tally_of(&[0, 1, 2, 3, 4, 5, 640]).check().unwrap_err();
        assert!(error.to_string().contains("1 unknown"), "{error}");
    }

    #[test]
    fn the_beginning_of_a_backlog_has_no_gaps() {
        tally_of(&[0, 2, 1]).check_beginning().unwrap();
        assert!(tally_of(&[0, 4, 1]).check_beginning().is_err());
    }
}
