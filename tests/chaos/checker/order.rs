//! **Reordered**: an event starts before an earlier event of its key and handler is completed. After
//! a fault completed events may run again, in order: those are duplicates.

use std::collections::HashMap;

use super::{
    Known,
    lanes::{Lane, Moment},
};
use crate::{history::End, verdict::Verdict};

/// Checks the order of starts and ends in the history.
pub(super) fn starts(lane: &Lane<'_>, verdict: &mut Verdict) {
    let positions: HashMap<i64, usize> = (0..)
        .zip(&lane.sent)
        .map(|(position, sent)| (sent.event, position))
        .collect();
    let mut completed = vec![false; lane.sent.len()];
    // All events before this position are completed.
    let mut first_open = 0;
    for moment in &lane.moments {
        let invocation = moment.invocation();
        let Some(&position) = positions.get(&invocation.event) else {
            continue;
        };
        match moment {
            Moment::Start(_) if position > first_open => {
                let number = lane.sent.get(first_open).map(|sent| sent.number);
                verdict.reordered.add(&invocation.key, || {
                    format!("{invocation:?} although number {number:?} is not completed")
                });
            }
            Moment::End(_, End::Ok) => {
                completed[position] = true;
                while completed.get(first_open) == Some(&true) {
                    first_open += 1;
                }
            }
            Moment::Start(_) | Moment::End(..) => {}
        }
    }
}

/// Checks the order of the handlers' rows: a later row of a key belongs to a later event.
pub(super) fn effects(known: &Known<'_>, verdict: &mut Verdict) {
    for (key, rows) in &known.effect_keys {
        let mut sorted_rows = rows.clone();
        sorted_rows.sort_unstable();
        let mut highest = 0;
        for (id, event) in sorted_rows {
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
