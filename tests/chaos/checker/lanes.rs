//! The starts and ends of invocations, by key and handler, in the order of time.

use std::collections::BTreeMap;

use crate::history::{End, Fact, Handler, Invocation, Sent};

/// The start or the end of an invocation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moment<'a> {
    Start(&'a Invocation),
    End(&'a Invocation, End),
}

impl<'a> Moment<'a> {
    pub(super) fn invocation(&self) -> &'a Invocation {
        match self {
            Self::Start(invocation) | Self::End(invocation, _) => invocation,
        }
    }
}

/// The events of one key for one handler.
#[derive(Debug, Default)]
pub(super) struct Lane<'a> {
    /// Published events, in the order of their numbers, in which they were published.
    pub(super) sent: Vec<&'a Sent>,
    /// Starts and ends, in the order of time.
    pub(super) moments: Vec<Moment<'a>>,
}

impl<'a> Lane<'a> {
    pub(super) fn ends(&self) -> impl Iterator<Item = (&'a Invocation, End)> {
        self.moments.iter().filter_map(|moment| match moment {
            Moment::End(invocation, end) => Some((*invocation, *end)),
            Moment::Start(_) => None,
        })
    }

    pub(super) fn starts(&self) -> impl Iterator<Item = &'a Invocation> {
        self.moments.iter().filter_map(|moment| match moment {
            Moment::Start(invocation) => Some(*invocation),
            Moment::End(..) => None,
        })
    }
}

pub(super) fn lanes(facts: &[Fact]) -> BTreeMap<(&str, Handler), Lane<'_>> {
    let mut lanes: BTreeMap<(&str, Handler), Lane<'_>> = BTreeMap::new();
    for fact in facts {
        match fact {
            Fact::Start(invocation) => {
                let lane = lanes
                    .entry((&invocation.key, invocation.handler))
                    .or_default();
                lane.moments.push(Moment::Start(invocation));
            }
            Fact::End { invocation, end } => {
                let lane = lanes
                    .entry((&invocation.key, invocation.handler))
                    .or_default();
                lane.moments.push(Moment::End(invocation, *end));
            }
            Fact::Sent(sent) => {
                let lane = lanes.entry((&sent.key, sent.handler)).or_default();
                lane.sent.push(sent);
            }
            Fact::Acknowledged { .. }
            | Fact::Duplicate { .. }
            | Fact::Fault(_)
            | Fact::Effect { .. } => {}
        }
    }
    for lane in lanes.values_mut() {
        lane.sent.sort_by_key(|sent| sent.number);
        // At equal times an end comes before a start.
        let is_start = |moment: &Moment<'_>| matches!(moment, Moment::Start(_));
        lane.moments
            .sort_by_key(|moment| (moment.invocation().at, is_start(moment)));
    }
    lanes
}
