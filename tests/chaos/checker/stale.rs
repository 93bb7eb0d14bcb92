//! **Stale**: something was done by a process that had no right to it, and no fault excuses it.

use std::collections::HashMap;

use super::{
    AROUND, Known, WRITTEN,
    lanes::{Lane, Moment},
};
use crate::{
    history::{End, Handler, Nanos, Visit},
    verdict::Verdict,
};

/// (a) An event starts while another one of its key and handler, or itself, is under way, in a
/// process that no fault has hit since that began.
pub(super) fn overlaps(known: &Known<'_>, lane: &Lane<'_>, verdict: &mut Verdict) {
    let mut under_way: Vec<&Visit> = Vec::new();
    for moment in &lane.moments {
        let visit = moment.visit();
        match moment {
            Moment::Start(_) => {
                for other in &under_way {
                    if !known.hit(other.pid, other.at - AROUND, visit.at) {
                        verdict
                            .stale
                            .add(&visit.key, || format!("{visit:?} beside {other:?}"));
                    }
                }
                under_way.push(visit);
            }
            Moment::End(..) => {
                let is_it = |other: &&Visit| {
                    (other.pid, other.event, other.attempt)
                        == (visit.pid, visit.event, visit.attempt)
                };
                if let Some(at) = under_way.iter().position(is_it) {
                    under_way.remove(at);
                }
            }
        }
    }
}

/// (b) An event starts although it was completed, by a process that no fault had hit from a second
/// before that until what it did must have been written. Only for the plain handler: what the other
/// one says is not yet committed.
///
/// All starts after a success count for the window of the duplicates, excused or not.
pub(super) fn repeats(known: &Known<'_>, lane: &Lane<'_>, verdict: &mut Verdict) {
    let mut completed: HashMap<i64, Vec<&Visit>> = HashMap::new();
    for moment in &lane.moments {
        match moment {
            Moment::Start(visit) if visit.handler == Handler::Plain => {
                let Some(before) = completed.get(&visit.event) else {
                    continue;
                };
                if let Some(first) = before.first() {
                    verdict.window = verdict.window.max(visit.at - first.at);
                }
                let sound =
                    |done: &&&Visit| !known.hit(done.pid, done.at - AROUND, done.at + WRITTEN);
                if let Some(done) = before.iter().find(sound) {
                    verdict.stale.add(&visit.key, || {
                        format!(
                            "{visit:?} again after {done:?}, {} ms later",
                            millis(visit.at - done.at)
                        )
                    });
                }
            }
            Moment::End(visit, End::Ok) => completed.entry(visit.event).or_default().push(visit),
            Moment::Start(_) | Moment::End(..) => {}
        }
    }
}

/// (c) More than one row for an event: a process wrote with a right it had lost. (d) for rows.
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

/// (d) Something starts that was never committed.
pub(super) fn uncommitted(known: &Known<'_>, lane: &Lane<'_>, verdict: &mut Verdict) {
    for visit in lane.starts() {
        if !known.sent.contains_key(&visit.event) {
            verdict
                .stale
                .add(&visit.key, || format!("{visit:?}, never committed"));
        }
    }
}

fn millis(nanos: Nanos) -> Nanos {
    nanos / 1_000_000
}
