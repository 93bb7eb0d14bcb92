//! **Reordered**: an event starts although an earlier one of its key, for the same handler, has not
//! been completed by anyone. What was completed may be done again after a fault, and from there on
//! again in order: those are duplicates.

use std::collections::HashMap;

use super::{
    Known,
    lanes::{Lane, Moment},
};
use crate::{history::End, verdict::Verdict};

/// As the handlers themselves saw it.
pub(super) fn starts(lane: &Lane<'_>, verdict: &mut Verdict) {
    let places: HashMap<i64, usize> = (0..)
        .zip(&lane.sent)
        .map(|(place, sent)| (sent.event, place))
        .collect();
    let mut completed = vec![false; lane.sent.len()];
    // Everything before this one is completed.
    let mut first_open = 0;
    for moment in &lane.moments {
        let visit = moment.visit();
        let Some(&place) = places.get(&visit.event) else {
            continue;
        };
        match moment {
            Moment::Start(_) if place > first_open => {
                let waits = lane.sent.get(first_open).map(|sent| sent.number);
                verdict.reordered.add(&visit.key, || {
                    format!("{visit:?} although number {waits:?} is not completed")
                });
            }
            Moment::End(_, End::Ok) => {
                completed[place] = true;
                while completed.get(first_open) == Some(&true) {
                    first_open += 1;
                }
            }
            Moment::Start(_) | Moment::End(..) => {}
        }
    }
}

/// As the rows have it: a later row of a key has a later event.
pub(super) fn effects(known: &Known<'_>, verdict: &mut Verdict) {
    for (key, rows) in &known.effect_keys {
        let mut rows = rows.clone();
        rows.sort_unstable();
        let mut highest = 0;
        for (id, event) in rows {
            let Some(sent) = known.sent.get(&event) else {
                continue;
            };
            if sent.number < highest {
                verdict.reordered.add(key, || {
                    format!("row {id} of {sent:?} after number {highest}")
                });
            }
            highest = highest.max(sent.number);
        }
    }
}
