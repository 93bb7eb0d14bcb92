//! The promises of publishing.

use std::collections::BTreeMap;

use super::Known;
use crate::verdict::Verdict;

/// **Missing**: a commit was acknowledged, but its rows do not exist. **Wrong dedup**: two
/// transactions published with the same dedup key, or the outbox reported a duplicate of a dedup
/// key that no transaction has committed.
pub(super) fn check(known: &Known<'_>, verdict: &mut Verdict) {
    let mut by_tx: BTreeMap<i64, usize> = BTreeMap::new();
    let mut by_dedup: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for sent in known.sent.values() {
        *by_tx.entry(sent.tx).or_default() += 1;
        if let Some(dedup) = &sent.dedup {
            by_dedup.entry(dedup).or_default().push(sent.event);
        }
    }
    for (tx, (_, published)) in &known.acknowledged {
        if *published > by_tx.get(tx).copied().unwrap_or(0) {
            verdict.missing.add("", || format!("transaction {tx}"));
        }
    }
    for (dedup, events) in &by_dedup {
        if events.len() > 1 {
            verdict
                .wrong_dedup
                .add("", || format!("dedup key {dedup}: {events:?}"));
        }
    }
    for dedup in &known.duplicates {
        if !by_dedup.contains_key(dedup) {
            verdict
                .wrong_dedup
                .add("", || format!("dedup key {dedup} was never committed"));
        }
    }
}
