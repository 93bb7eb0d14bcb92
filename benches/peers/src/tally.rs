//! Which jobs were handled: none may be missing, and with keys, none may overtake another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, bail};
use serde_json::Value;

pub(crate) struct Tally {
    seen: Vec<AtomicBool>,
    /// Per key one more than the job that was handled last; empty if order does not matter.
    last: Vec<AtomicUsize>,
    distinct: AtomicUsize,
    again: AtomicUsize,
    overtaken: AtomicUsize,
}

impl Tally {
    pub(crate) fn new(records: usize, keys: usize) -> Self {
        Self {
            seen: (0..records).map(|_| AtomicBool::new(false)).collect(),
            last: (0..keys).map(|_| AtomicUsize::new(0)).collect(),
            distinct: AtomicUsize::new(0),
            again: AtomicUsize::new(0),
            overtaken: AtomicUsize::new(0),
        }
    }

    /// The whole work of every handler.
    pub(crate) fn handle(&self, job: usize) {
        if self.seen[job].swap(true, Ordering::Relaxed) {
            // At least once is what they promise: a repetition breaks no order either.
            self.again.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if !self.last.is_empty() {
            let before = self.last[job % self.last.len()].swap(job + 1, Ordering::SeqCst);
            if before > job {
                self.overtaken.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.distinct.fetch_add(1, Ordering::Relaxed);
    }

    /// The same for a payload that the library gives as it was stored.
    pub(crate) fn handle_value(&self, payload: &Value) {
        if let Some(job) = payload["n"]
            .as_u64()
            .and_then(|job| usize::try_from(job).ok())
        {
            self.handle(job);
        }
    }

    pub(crate) fn distinct(&self) -> usize {
        self.distinct.load(Ordering::Relaxed)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.distinct() == self.seen.len()
    }

    /// How many were handled again, if nothing is wrong.
    pub(crate) fn check(&self) -> Result<usize> {
        if !self.is_complete() {
            bail!(
                "{} of {} jobs were never handled",
                self.seen.len() - self.distinct(),
                self.seen.len()
            );
        }
        let overtaken = self.overtaken.load(Ordering::Relaxed);
        if overtaken > 0 {
            bail!("{overtaken} jobs were overtaken by a later job of their key");
        }
        Ok(self.again.load(Ordering::Relaxed))
    }
}
