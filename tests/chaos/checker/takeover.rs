//! **Takeover**: for each kill and each key that the victim served within the second before, and
//! that had something to deliver: the time until another process starts what waited. What the
//! victim still finished in its last moments is not started again, and is no sample.

use std::collections::BTreeMap;

use super::{Known, lanes::Lane};
use crate::{
    history::{End, Nanos},
    verdict::Verdict,
};

/// How long before the kill.
const RECENTLY: Nanos = 1_000_000_000;

pub(super) fn measure(known: &Known<'_>, verdict: &mut Verdict) {
    for fault in &known.faults {
        let ("kill", Some(pid)) = (&*fault.kind, fault.pid) else {
            continue;
        };
        // The handlers of a key move together: the first of them counts.
        let mut first: BTreeMap<&str, Nanos> = BTreeMap::new();
        for ((key, _), lane) in &known.lanes {
            let recent = fault.from - RECENTLY..=fault.until;
            let served = |lane: &Lane<'_>| {
                lane.starts()
                    .any(|visit| visit.pid == pid && recent.contains(&visit.at))
            };
            if !served(lane) {
                continue;
            }
            let mut later = lane.starts().filter(|visit| {
                visit.at > fault.from
                    && visit.pid != pid
                    && waits(known, lane, visit.event, fault.from)
            });
            if let Some(next) = later.next() {
                let took = next.at - fault.from;
                let shortest = first.entry(key).or_insert(took);
                *shortest = took.min(*shortest);
            }
        }
        verdict.takeovers.extend(first.into_values());
    }
    verdict.takeovers.sort_unstable();
}

/// Whether this event was committed by then and not completed.
fn waits(known: &Known<'_>, lane: &Lane<'_>, event: i64, at: Nanos) -> bool {
    let mut sent = lane.sent.iter().filter(|sent| sent.event == event);
    sent.any(|sent| {
        let committed = known.acknowledged.get(&sent.tx);
        let completed = |visit: &crate::history::Visit, end| {
            end == End::Ok && visit.event == sent.event && visit.at <= at
        };
        committed.is_some_and(|(committed, _)| *committed < at)
            && !lane.ends().any(|(visit, end)| completed(visit, end))
    })
}
