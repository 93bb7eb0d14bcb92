//! What handlers did, by key and handler, in the order of time.

use std::collections::BTreeMap;

use crate::history::{End, Fact, Handler, Sent, Visit};

/// Something that a handler did.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moment<'a> {
    Start(&'a Visit),
    End(&'a Visit, End),
}

impl<'a> Moment<'a> {
    pub(super) fn visit(&self) -> &'a Visit {
        match self {
            Self::Start(visit) | Self::End(visit, _) => visit,
        }
    }
}

/// The events of one key for one handler.
#[derive(Debug, Default)]
pub(super) struct Lane<'a> {
    /// In the order of their numbers, which is the order in which they were published.
    pub(super) sent: Vec<&'a Sent>,
    /// In the order of time.
    pub(super) moments: Vec<Moment<'a>>,
}

impl<'a> Lane<'a> {
    pub(super) fn ends(&self) -> impl Iterator<Item = (&'a Visit, End)> {
        self.moments.iter().filter_map(|moment| match moment {
            Moment::End(visit, end) => Some((*visit, *end)),
            Moment::Start(_) => None,
        })
    }

    pub(super) fn starts(&self) -> impl Iterator<Item = &'a Visit> {
        self.moments.iter().filter_map(|moment| match moment {
            Moment::Start(visit) => Some(*visit),
            Moment::End(..) => None,
        })
    }
}

pub(super) fn lanes(facts: &[Fact]) -> BTreeMap<(&str, Handler), Lane<'_>> {
    let mut lanes: BTreeMap<(&str, Handler), Lane<'_>> = BTreeMap::new();
    for fact in facts {
        match fact {
            Fact::Start(visit) => {
                let lane = lanes.entry((&visit.key, visit.handler)).or_default();
                lane.moments.push(Moment::Start(visit));
            }
            Fact::End { visit, end } => {
                let lane = lanes.entry((&visit.key, visit.handler)).or_default();
                lane.moments.push(Moment::End(visit, *end));
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
        // An end makes room for a start of the same moment.
        let is_start = |moment: &Moment<'_>| matches!(moment, Moment::Start(_));
        lane.moments
            .sort_by_key(|moment| (moment.visit().at, is_start(moment)));
    }
    lanes
}
