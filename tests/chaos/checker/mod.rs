//! From a history to a verdict. A pure function, which knows what the library promises and nothing
//! of how it keeps that.
//!
//! An event is *completed* when a handler ended well; for the handler with a transaction, when its
//! row is there. A process is *hit* by a fault from its beginning to its end: such a process may
//! have done things that nobody else knows of. Joining, leaving and a wrong clock are no excuse.

mod lanes;
mod order;
mod published;
mod stale;
mod takeover;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    history::{End, Fact, Fault, Handler, Nanos, Sent},
    verdict::Verdict,
};
use lanes::{Lane, lanes};

/// How long before and after it a fault may still show: a process that is resumed finishes what it
/// was about to do, one that is killed had not written what it did last.
const AROUND: Nanos = 1_000_000_000;

/// How long it may take until what was done is written, where many write at once: SQLite gives its
/// lock to whoever happens to ask, and has been seen to let one wait for more than a second.
const WRITTEN: Nanos = 3_000_000_000;

/// Everything that is known, sorted.
struct Known<'a> {
    /// By event.
    sent: HashMap<i64, &'a Sent>,
    /// By transaction: when, and how many events it says it has.
    acknowledged: BTreeMap<i64, (Nanos, usize)>,
    duplicates: BTreeSet<&'a str>,
    faults: Vec<&'a Fault>,
    /// By event: the ids of its rows.
    effects: HashMap<i64, Vec<i64>>,
    effect_keys: BTreeMap<&'a str, Vec<(i64, i64)>>,
    lanes: BTreeMap<(&'a str, Handler), Lane<'a>>,
}

impl<'a> Known<'a> {
    fn from(facts: &'a [Fact]) -> Self {
        let mut known = Self {
            sent: HashMap::new(),
            acknowledged: BTreeMap::new(),
            duplicates: BTreeSet::new(),
            faults: Vec::new(),
            effects: HashMap::new(),
            effect_keys: BTreeMap::new(),
            lanes: lanes(facts),
        };
        for fact in facts {
            match fact {
                Fact::Start(_) | Fact::End { .. } => {}
                Fact::Acknowledged { at, tx, events } => {
                    known.acknowledged.insert(*tx, (*at, *events));
                }
                Fact::Duplicate { dedup, .. } => {
                    known.duplicates.insert(dedup);
                }
                Fact::Fault(fault) => known.faults.push(fault),
                Fact::Sent(sent) => {
                    known.sent.insert(sent.event, sent);
                }
                Fact::Effect { id, event, key } => {
                    known.effects.entry(*event).or_default().push(*id);
                    known
                        .effect_keys
                        .entry(key)
                        .or_default()
                        .push((*id, *event));
                }
            }
        }
        known
    }

    /// Whether a fault had this process between these times.
    fn hit(&self, pid: u32, from: Nanos, to: Nanos) -> bool {
        let of_it = |fault: &&&Fault| fault.pid.is_none_or(|hit| hit == pid);
        let mut faults = self.faults.iter().filter(of_it);
        faults.any(|fault| fault.from <= to && fault.until >= from)
    }
}

/// What is to be said about a run.
pub(crate) fn judge(facts: &[Fact]) -> Verdict {
    let known = Known::from(facts);
    let mut verdict = Verdict {
        committed: known.sent.len(),
        ..Verdict::default()
    };
    published::check(&known, &mut verdict);
    completed(&known, &mut verdict);
    for lane in known.lanes.values() {
        order::starts(lane, &mut verdict);
        stale::overlaps(&known, lane, &mut verdict);
        stale::repeats(&known, lane, &mut verdict);
        stale::uncommitted(&known, lane, &mut verdict);
    }
    order::effects(&known, &mut verdict);
    stale::effects(&known, &mut verdict);
    takeover::measure(&known, &mut verdict);
    verdict
}

/// **Lost** is a committed event that was never completed. **Delivered** are all others.
/// **Duplicates** are successes beyond the first of an event, and their *window* is the time from
/// the first success to the start of an attempt that came after it.
fn completed(known: &Known<'_>, verdict: &mut Verdict) {
    let mut successes: HashMap<i64, usize> = HashMap::new();
    for lane in known.lanes.values() {
        for (visit, end) in lane.ends() {
            if end == End::Ok && visit.handler == Handler::Plain {
                *successes.entry(visit.event).or_default() += 1;
            }
        }
    }
    for sent in known.sent.values() {
        let completed = match sent.handler {
            Handler::Plain => successes.get(&sent.event).copied().unwrap_or(0),
            Handler::Tx => usize::from(known.effects.contains_key(&sent.event)),
        };
        match completed {
            0 => verdict.lost.add(&sent.key, || format!("{sent:?}")),
            _ => verdict.delivered += 1,
        }
        verdict.duplicates += completed.saturating_sub(1);
    }
}
