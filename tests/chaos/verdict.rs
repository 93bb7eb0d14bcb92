//! What is said about a run in the end.

use std::{collections::BTreeSet, fmt};

use crate::history::{Fact, Nanos};

/// Things that must not be, of one kind.
#[derive(Debug, Default)]
pub(crate) struct Offences {
    pub(crate) count: usize,
    /// The first few of them.
    pub(crate) examples: Vec<String>,
    /// Their keys.
    pub(crate) keys: BTreeSet<String>,
}

/// How many of a kind are told in words.
const EXAMPLES: usize = 5;

impl Offences {
    pub(crate) fn add(&mut self, key: &str, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(what());
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
    pub(crate) lost: Offences,
    pub(crate) reordered: Offences,
    pub(crate) stale: Offences,
    /// Commits that were acknowledged and are not there.
    pub(crate) missing: Offences,
    /// Dedup keys that did not do what they are for.
    pub(crate) twice: Offences,
    pub(crate) duplicates: usize,
    pub(crate) window: Nanos,
    /// From the shortest to the longest.
    pub(crate) takeovers: Vec<Nanos>,
}

impl Verdict {
    fn kinds(&self) -> [(&'static str, &Offences); 5] {
        [
            ("lost", &self.lost),
            ("reordered", &self.reordered),
            ("stale", &self.stale),
            ("acknowledged commits missing", &self.missing),
            ("wrong about dedup keys", &self.twice),
        ]
    }

    /// Nothing is there that must not be.
    pub(crate) fn is_clean(&self) -> bool {
        self.kinds().iter().all(|(_, offences)| offences.count == 0)
    }

    /// What is wrong, with examples and the histories of their keys.
    pub(crate) fn explain(&self, facts: &[Fact]) {
        for (kind, offences) in self.kinds() {
            if offences.count > 0 {
                eprintln!("\n!! {kind}: {}", offences.count);
            }
            for example in &offences.examples {
                eprintln!("   {example}");
            }
            for key in offences.keys.iter().take(2) {
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

    /// One in a hundred is longer than the 99th percentile.
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
            Self::Start(visit) | Self::End { visit, .. } => visit.key == wanted,
            Self::Sent(sent) => sent.key == wanted,
            Self::Effect { key, .. } => key == wanted,
            Self::Fault(_) => true,
            Self::Acknowledged { .. } | Self::Duplicate { .. } => false,
        }
    }

    fn at(&self) -> Nanos {
        match self {
            Self::Start(visit) | Self::End { visit, .. } => visit.at,
            Self::Fault(fault) => fault.from,
            Self::Acknowledged { at, .. } | Self::Duplicate { at, .. } => *at,
            Self::Sent(_) | Self::Effect { .. } => 0,
        }
    }
}
