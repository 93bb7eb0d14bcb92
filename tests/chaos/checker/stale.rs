//! **Stale**: a process acted without a valid lease, and no fault excuses it.

use std::collections::HashMap;

use super::{
    FAULT_MARGIN, Known, WRITE_DELAY,
    lanes::{Lane, Moment},
};
use crate::{
    history::{End, Handler, Invocation, Nanos},
    verdict::Verdict,
};

/// (a) An event starts while an event of the same key and handler runs in a process that no fault
/// has hit since that invocation started.
pub(super) fn overlaps(known: &Known<'_>, lane: &Lane<'_>, verdict: &mut Verdict) {
    let mut running: Vec<&Invocation> = Vec::new();
    for moment in &lane.moments {
        let invocation = moment.invocation();
        match moment {
            Moment::Start(_) => {
                for other in &running {
                    if !known.was_hit(other.pid, other.at - FAULT_MARGIN, invocation.at) {
                        verdict.stale.add(&invocation.key, || {
                            format!("{invocation:?} while {other:?} was running")
                        });
                    }
                }
                running.push(invocation);
            }
            Moment::End(..) => {
                let is_it = |other: &&Invocation| {
                    (other.pid, other.event, other.attempt)
                        == (invocation.pid, invocation.event, invocation.attempt)
                };
                if let Some(at) = running.iter().position(is_it) {
                    running.remove(at);
                }
            }
        }
    }
}

/// (b) An event starts again after a process completed it that no fault had hit, from one second
/// before its success until it must have written the result. Only for the plain handler: the other
/// one writes its end before its transaction commits.
///
/// All starts after a success count for the window of duplicates, with or without a fault.
pub(super) fn repeats(known: &Known<'_>, lane: &Lane<'_>, verdict: &mut Verdict) {
    let mut completed: HashMap<i64, Vec<&Invocation>> = HashMap::new();
    for moment in &lane.moments {
        match moment {
            Moment::Start(invocation) if invocation.handler == Handler::Plain => {
                let Some(before) = completed.get(&invocation.event) else {
                    continue;
                };
                if let Some(first) = before.first() {
                    verdict.window = verdict.window.max(invocation.at - first.at);
                }
                let was_healthy = |done: &&&Invocation| {
                    !known.was_hit(done.pid, done.at - FAULT_MARGIN, done.at + WRITE_DELAY)
                };
                if let Some(done) = before.iter().find(was_healthy) {
                    verdict.stale.add(&invocation.key, || {
                        format!(
                            "{invocation:?} again after {done:?}, {} ms later",
                            millis(invocation.at - done.at)
                        )
                    });
                }
            }
            Moment::End(invocation, End::Ok) => completed
                .entry(invocation.event)
                .or_default()
                .push(invocation),
            Moment::Start(_) | Moment::End(..) => {}
        }
    }
}

/// (c) An event has more than one row: a process committed after it had lost its lease. (d) An
/// event that was never committed has a row.
pub(super) fn effects(known: &Known<'_>, verdict: &mut Verdict) {
    for (key, rows) in &known.effect_keys {
        for (id, event) in rows {
            let rows = known.effects.get(event).map_or(&[][..], |rows| rows);
            if rows.iter().min() != Some(id) {
                verdict
                    .stale
                    .add(key, || format!("event {event} has another row, {id}"));
            }
            if !known.sent.contains_key(event) {
                verdict.stale.add(key, || {
                    format!("row {id} of event {event}, never committed")
                });
            }
        }
    }
}

/// (d) An event starts that was never committed.
pub(super) fn uncommitted(known: &Known<'_>, lane: &Lane<'_>, verdict: &mut Verdict) {
    for invocation in lane.starts() {
        if !known.sent.contains_key(&invocation.event) {
            verdict.stale.add(&invocation.key, || {
                format!("{invocation:?}, never committed")
            });
        }
    }
}

fn millis(nanos: Nanos) -> Nanos {
    nanos / 1_000_000
}
