//! **Takeover**: the time from a kill until another process starts an event that waited. There is
//! one sample for each kill and each key that the victim served in the second before the kill and
//! that had a waiting event. An event that the victim finished before it died is no sample.

use std::collections::BTreeMap;

use super::{Known, lanes::Lane};
use crate::{
    history::{End, Nanos},
    verdict::Verdict,
};

/// The victim served a key if it started an event of the key at most this long before the kill.
const RECENTLY: Nanos = 1_000_000_000;

pub(super) fn measure(known: &Known<'_>, verdict: &mut Verdict) {
    for fault in &known.faults {
        let ("kill", Some(pid)) = (&*fault.kind, fault.pid) else {
            continue;
        };
        // All handlers of a key change owner together, so the first of them counts.
        let mut first: BTreeMap<&str, Nanos> = BTreeMap::new();
        for ((key, _), lane) in &known.lanes {
            let recent = fault.from - RECENTLY..=fault.until;
            let served = |lane: &Lane<'_>| {
                lane.starts()
                    .any(|invocation| invocation.pid == pid && recent.contains(&invocation.at))
            };
            if !served(lane) {
                continue;
            }
            let mut later = lane.starts().filter(|invocation| {
                invocation.at > fault.from
                    && invocation.pid != pid
                    && waits(known, lane, invocation.event, fault.from)
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

/// Whether this event was committed and not completed at the time `at`.
fn waits(known: &Known<'_>, lane: &Lane<'_>, event: i64, at: Nanos) -> bool {
    let mut sent = lane.sent.iter().filter(|sent| sent.event == event);
    sent.any(|sent| {
        let committed = known.acknowledged.get(&sent.tx);
        let completed = |invocation: &crate::history::Invocation, end| {
            end == End::Ok && invocation.event == sent.event && invocation.at <= at
        };
        committed.is_some_and(|(committed_at, _)| *committed_at < at)
            && !lane
                .ends()
                .any(|(invocation, end)| completed(invocation, end))
    })
}
