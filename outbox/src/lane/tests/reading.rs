//! A fetch, statement by statement: others write in between.

use std::mem;

use tokio::time::Instant;

use super::world::World;
use crate::{
    dispatcher::engine::Want,
    fetch::{Arrived, Round, round::by_lane},
    store::{FetchedDelivery, Writers},
};

/// A fetch that is under way, so many of its statements done.
pub(super) struct Fetch {
    round: Round,
    done: u8,
    arrived: Arrived,
}

/// How many deliveries of a parked lane are read at once; few, so that some are left.
const PER_LANE: usize = 2;
/// How many keys of a partition in which something blocks; few, so that some are not known.
const KEYS_PER_PART: usize = 2;
const STATEMENTS: u8 = 7;

impl World {
    /// Starts a fetch, unless one is under way or there is nothing to read.
    pub(super) fn round(&mut self, poll: bool, due: bool) -> bool {
        if self.fetch.is_some() {
            return false;
        }
        let sweep = mem::take(&mut self.sweep);
        let want = Want {
            poll: poll || sweep,
            unprompted: false,
            due: due || sweep,
            sweep,
            offset: 0,
        };
        self.fetch = self.engine.round(want).map(|round| Fetch {
            round,
            done: 0,
            arrived: Arrived::default(),
        });
        for lane in self.fetch.iter().flat_map(|fetch| &fetch.round.lanes) {
            assert!(!self.engine.lanes.is_closed(lane.part), "reads {lane:?}");
        }
        self.fetch.is_some()
    }

    /// Like the slow sweep underneath.
    pub(super) fn wish_sweep(&mut self) {
        self.sweep = true;
    }

    /// The next statement of the fetch that is under way. Whether there was one.
    pub(super) fn read(&mut self) -> bool {
        let Some(fetch) = &mut self.fetch else {
            return false;
        };
        let Fetch {
            round,
            done,
            arrived,
        } = fetch;
        let (db, parts) = (&self.db, &round.parts);
        match *done {
            0 => {
                let rows = db.lanes(&round.lanes, PER_LANE);
                arrived.lanes = by_lane(&round.lanes, rows);
            }
            1 => {
                let limit = round.due.unwrap_or(0);
                let due = db.due_deliveries(parts, &round.handlers, limit);
                let known = |due: &FetchedDelivery| {
                    let handler = round.router.handler(&due.handler);
                    let name = handler.map(|handler| (due.fetched.record.id, handler));
                    name.is_some_and(|name| round.known_deliveries.contains(&name))
                };
                arrived.due_deliveries = due.into_iter().filter(|due| !known(due)).collect();
            }
            2 => arrived.due_records = db.due_records(parts, round.due.unwrap_or(0)),
            3 => {
                if let Some(plan) = &round.pending {
                    let now = Instant::now();
                    self.late.look(parts, round.highest, Writers::InOrder, now);
                    if round.sweep.is_some() {
                        self.late.read_again(parts, 0);
                    }
                    let pages = self.late.lowered(&plan.pages);
                    let known = match pages == plan.pages {
                        true => &[],
                        false => &*round.known,
                    };
                    arrived.pending = db.pending(&pages, known, plan.per_page, plan.limit);
                    self.late.read(plan, &arrived.pending);
                }
            }
            4 => {
                arrived.runnable = match round.sweep {
                    Some(limit) => db.runnable(parts, &round.handlers, limit),
                    None => db.runnable(parts, &round.thirsty, round.thirst),
                }
            }
            5 => {
                if round.sweep.is_some() {
                    let keys = db.blocked_keys(parts, KEYS_PER_PART);
                    arrived.may_block = Some(round.may_block.read(&keys, KEYS_PER_PART));
                }
            }
            6 => {
                for lane in db.blocked(&arrived.lanes_to_ask(round)) {
                    let handlers = arrived.blocked.entry(lane.key).or_default();
                    handlers.insert(lane.handler);
                }
            }
            _ => return false,
        }
        *done += 1;
        *done <= STATEMENTS
    }

    /// The rest of the fetch is read, and all of it delivered; or it failed.
    pub(super) fn arrive(&mut self, works: bool) {
        while works && self.read() {}
        let Some(Fetch { round, arrived, .. }) = self.fetch.take() else {
            return;
        };
        if works {
            self.engine.arrived(&round, arrived);
        } else {
            self.engine.failed(round);
            self.sweep = true;
        }
    }
}
