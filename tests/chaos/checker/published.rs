//! What publishing promises. These failures are kinds of their own.

use std::collections::BTreeMap;

use super::Known;
use crate::verdict::Verdict;

/// **Missing**: a commit was acknowledged, and what it wrote is not there. **Twice**: two
/// transactions have published with the same dedup key, or the outbox said that a dedup key is
/// there which nobody has committed.
pub(super) fn check(known: &Known<'_>, verdict: &mut Verdict) {
    let mut by_tx: BTreeMap<i64, usize> = BTreeMap::new();
    let mut by_dedup: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for sent in known.sent.values() {
        *by_tx.entry(sent.tx).or_default() += 1;
        if let Some(dedup) = &sent.dedup {
            by_dedup.entry(dedup).or_default().push(sent.event);
        }
    }
    for (tx, (_, wrote)) in &known.acknowledged {
        if *wrote > by_tx.get(tx).copied().unwrap_or(0) {
            verdict.missing.add("", || format!("transaction {tx}"));
        }
    }
    for (dedup, events) in &by_dedup {
        if events.len() > 1 {
            verdict
                .twice
                .add("", || format!("dedup key {dedup}: {events:?}"));
        }
    }
    for dedup in &known.duplicates {
        if !by_dedup.contains_key(dedup) {
            verdict
                .twice
                .add("", || format!("dedup key {dedup} is nobody's"));
        }
    }
}
