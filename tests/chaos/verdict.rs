//! The verdict about a run.

use std::{collections::BTreeSet, fmt};

use crate::history::{Fact, Nanos};

/// Violations of one promise.
#[derive(Debug, Default)]
pub(crate) struct Violations {
    pub(crate) count: usize,
    /// The first [`EXAMPLES`] violations, in words.
    pub(crate) examples: Vec<String>,
    /// The keys of the examples.
    pub(crate) keys: BTreeSet<String>,
}

/// The number of examples per kind.
const EXAMPLES: usize = 5;

impl Violations {
    pub(crate) fn add(&mut self, key: &str, describe: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(describe());
            if !key.is_empty() {
                self.keys.insert(key.to_owned());
            }
        }
    }
}

/// The result of the checker.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) committed: usize,
    pub(crate) delivered: usize,
    pub(crate) lost: Violations,
    pub(crate) reordered: Violations,
    pub(crate) stale: Violations,
    /// Acknowledged commits whose rows are missing.
    pub(crate) missing: Violations,
    /// Dedup keys that were published twice, or refused without a record.
    pub(crate) wrong_dedup: Violations,
    pub(crate) duplicates: usize,
    pub(crate) window: Nanos,
    /// The times of takeovers, from the shortest to the longest.
    pub(crate) takeovers: Vec<Nanos>,
}

impl Verdict {
    fn kinds(&self) -> [(&'static str, &Violations); 5] {
        [
            ("lost", &self.lost),
            ("reordered", &self.reordered),
            ("stale", &self.stale),
            ("acknowledged commits missing", &self.missing),
            ("wrong about dedup keys", &self.wrong_dedup),
        ]
    }

    /// Whether no promise was violated.
    pub(crate) fn is_clean(&self) -> bool {
        self.kinds()
            .iter()
            .all(|(_, violations)| violations.count == 0)
    }

    /// Prints the violations, with examples and the histories of their keys.
    pub(crate) fn explain(&self, facts: &[Fact]) {
        for (kind, violations) in self.kinds() {
            if violations.count > 0 {
                eprintln!("\n!! {kind}: {}", violations.count);
            }
            for example in &violations.examples {
                eprintln!("   {example}");
            }
            for key in violations.keys.iter().take(2) {
                eprintln!("   the history of {key}:");
                let mut of_key: Vec<&Fact> = facts.iter().filter(|fact| fact.is_of(key)).collect();
                of_key.sort_by_key(|fact| fact.at());
                for fact in of_key {
                    let line = serde_json::to_string(fact).unwrap_or_default();
                    eprintln!("     {line}");
                }
            }
        }
    }

    /// The percentile of the takeover times, in milliseconds.
    fn takeover(&self, percent: usize) -> String {
        let last = self.takeovers.len().saturating_sub(1);
        let at = (last * percent).div_ceil(100);
        match self.takeovers.get(at) {
            Some(took) => (took / 1_000_000).to_string(),
            None => "-".to_owned(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.window / 100_000_000;
        write!(
            f,
            "committed {}, delivered {}, lost {}, reordered {}, stale {}, duplicates {} (largest window {}.{} s), takeover {}/{} ms",
            self.committed,
            self.delivered,
            self.lost.count,
            self.reordered.count,
            self.stale.count,
            self.duplicates,
            tenths / 10,
            tenths % 10,
            self.takeover(50),
            self.takeover(99),
        )
    }
}

impl Fact {
    fn is_of(&self, wanted: &str) -> bool {
        match self {
            Self::Start(invocation) | Self::End { invocation, .. } => invocation.key == wanted,
            Self::Sent(sent) => sent.key == wanted,
            Self::Effect { key, .. } => key == wanted,
            Self::Fault(_) => true,
            Self::Acknowledged { .. } | Self::Duplicate { .. } => false,
        }
    }

    fn at(&self) -> Nanos {
        match self {
            Self::Start(invocation) | Self::End { invocation, .. } => invocation.at,
            Self::Fault(fault) => fault.from,
            Self::Acknowledged { at, .. } | Self::Duplicate { at, .. } => *at,
            Self::Sent(_) | Self::Effect { .. } => 0,
        }
    }
}
