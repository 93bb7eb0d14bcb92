//! The handled jobs: none may be missing, and in the ordered mode none may overtake another of its key.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, bail};
use serde_json::Value;

pub(crate) struct Tally {
    seen: Vec<AtomicBool>,
    /// The number of the last handled job of each key, plus 1; empty in the unordered mode.
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
            // The libraries promise delivery at least once, so a repeated job is no error.
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

    /// Handles a job by its stored payload.
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

    /// Returns how many jobs were handled again, or an error for a missing or overtaken job.
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
