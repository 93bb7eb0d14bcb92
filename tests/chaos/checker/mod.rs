//! From a history to a verdict: a pure function. It knows the promises of the library, not their
//! implementation.
//!
//! An event of the plain handler is *completed* when an invocation succeeded. An event of the
//! handler with a transaction is completed when its row exists. A fault *hits* a process from the
//! start of the fault to its end: the process may then have run handlers without writing their
//! results. Joining, leaving and a wrong clock do not count as faults here.

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

/// How long before and after a fault its effects may show. A resumed process finishes the work that
/// it was about to do; a killed process had not written its last results.
const FAULT_MARGIN: Nanos = 1_000_000_000;

/// The longest time until a worker has written a result. SQLite does not grant its write lock in
/// order: writers were seen to wait for more than a second.
const WRITE_DELAY: Nanos = 3_000_000_000;

/// All facts, sorted by kind.
struct Known<'a> {
    /// Published events, by their number.
    sent: HashMap<i64, &'a Sent>,
    /// By transaction: the time of its acknowledgement, and the number of its events.
    acknowledged: BTreeMap<i64, (Nanos, usize)>,
    duplicates: BTreeSet<&'a str>,
    faults: Vec<&'a Fault>,
    /// By event: the ids of the rows of its handler.
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

    /// Whether a fault hit this process between these times.
    fn was_hit(&self, pid: u32, from: Nanos, to: Nanos) -> bool {
        let of_process = |fault: &&&Fault| fault.pid.is_none_or(|victim| victim == pid);
        let mut faults = self.faults.iter().filter(of_process);
        faults.any(|fault| fault.from <= to && fault.until >= from)
    }
}

/// The verdict about a run.
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

/// **Lost** is a committed event that was never completed. **Delivered** are all other committed
/// events. **Duplicates** are successes after the first of an event. Their *window* is the time from
/// the first success to the start of a later attempt.
fn completed(known: &Known<'_>, verdict: &mut Verdict) {
    let mut successes: HashMap<i64, usize> = HashMap::new();
    for lane in known.lanes.values() {
        for (invocation, end) in lane.ends() {
            if end == End::Ok && invocation.handler == Handler::Plain {
                *successes.entry(invocation.event).or_default() += 1;
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
