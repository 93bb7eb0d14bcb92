//! A dispatcher and its database, without tasks and SQL: does one thing at a time, as the loop in
//! `dispatcher::run` does, and asks the [`Laws`] whether it may.

use std::{mem, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use super::{HANDLERS, Setup, db::Db, laws::Laws};
use crate::{
    Attempt, Completion, Decision, FailedBecause, HandlerError,
    dispatcher::engine::{Engine, Want},
    fetch::{Arrived, Late, Round, round::by_lane},
    lane::{HandlerIx, Unwritten, Work, completed_row},
    store::{Fence, Writers},
};

pub(super) struct World {
    setup: Setup,
    pub(super) db: Db,
    pub(super) engine: Engine,
    late: Late,
    fetch: Option<Fetch>,
    batch: Option<Taken>,
    /// What runs, each with the fence that it was started with.
    pub(super) running: Vec<(Work, Fence)>,
    /// The loop has been told to read everything again.
    sweep: bool,
    pub(super) paused: Vec<String>,
    thief: Uuid,
    /// Leases have run out, and the dispatcher knows that they may have.
    expired: bool,
    pub(super) laws: Laws,
}

/// A fetch that is under way, so many of its statements done.
struct Fetch {
    round: Round,
    done: u8,
    arrived: Arrived,
}

/// A batch that is being written.
struct Taken {
    unwritten: Unwritten,
    fence: Fence,
    committed: bool,
}

/// How an invocation ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Completed,
    RetryIn(u8),
    Failed,
}

/// How many deliveries of a parked lane are read at once; few, so that some are left.
const PER_LANE: usize = 2;
const STATEMENTS: u8 = 7;

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let mut world = Self {
            setup,
            db: Db::default(),
            engine: setup.engine(),
            late: Late::default(),
            fetch: None,
            batch: None,
            running: Vec::new(),
            sweep: true,
            paused: Vec::new(),
            thief: Uuid::now_v7(),
            expired: false,
            laws: Laws::new(setup.ordered),
        };
        (0..2).for_each(|part| world.db.give(part, world.engine.leases.owner));
        world.claim(true);
        world
    }

    /// All memory is gone; a batch that was on its way may have arrived.
    pub(super) fn crash(&mut self, commit: bool) {
        if commit {
            self.commit();
        }
        let db = mem::take(&mut self.db);
        let laws = mem::replace(&mut self.laws, Laws::new(self.setup.ordered));
        let paused = mem::take(&mut self.paused);
        *self = Self {
            paused,
            laws,
            ..Self::new(self.setup)
        };
        let owner = self.engine.leases.owner;
        self.db = db;
        (0..2).for_each(|part| self.db.give(part, owner));
        self.claim(true);
        self.laws.restarted(|_| true);
        let paused = self.paused.clone();
        self.engine.pause(&paused);
    }

    /// Another process takes a partition whose lease has run out, and does some work.
    pub(super) fn steal(&mut self, part: u16, work: u8) {
        self.take();
        self.expired = true;
        self.db.give(part, self.thief);
        for _ in 0..work {
            for done in self.db.work_off(part) {
                self.laws.completed_elsewhere(done);
            }
        }
    }

    /// Leases are renewed; what was lost comes back if `all`.
    pub(super) fn claim(&mut self, all: bool) {
        self.arrive(true);
        let owner = self.engine.leases.owner;
        if all {
            let lost = self.db.leases.iter();
            let lost = lost.filter(|(_, (other, _))| *other != owner);
            let lost: Vec<u16> = lost.map(|(part, _)| *part).collect();
            lost.into_iter().for_each(|part| self.db.give(part, owner));
        }
        let leases = self.db.leases_of(owner);
        let changes = self.engine.claimed(&leases, Instant::now());
        let lost = |part: u16| changes.lost.contains(&part);
        let mut stopped: Vec<HandlerIx> = Vec::new();
        self.running.retain(|(work, _)| {
            if lost(work.part) {
                stopped.push(work.handler);
            }
            !lost(work.part)
        });
        if !changes.lost.is_empty() {
            self.engine.lanes.lose(&changes.lost, &stopped);
        }
        self.laws.restarted(lost);
        self.sweep |= !changes.gained.is_empty();
        self.expired = false;
    }

    /// What has its place when a handler is paused may still start.
    pub(super) fn pause(&mut self, handler: HandlerIx, paused: bool) {
        self.claim(false);
        self.take();
        let id = HANDLERS[usize::from(handler)];
        self.paused.retain(|other| other != id);
        if paused {
            self.paused.push(id.to_owned());
        }
        let paused = self.paused.clone();
        self.sweep |= self.engine.pause(&paused);
    }

    /// Starts a fetch, unless one is under way or there is nothing to read.
    pub(super) fn round(&mut self, poll: bool, due: bool) -> bool {
        if self.fetch.is_some() {
            return false;
        }
        let sweep = mem::take(&mut self.sweep);
        let want = Want {
            poll: poll || sweep,
            due: due || sweep,
            sweep,
            offset: 0,
        };
        self.fetch = self.engine.round(want).map(|round| Fetch {
            round,
            done: 0,
            arrived: Arrived::default(),
        });
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
                arrived.due_deliveries = db.due_deliveries(parts, &round.handlers, limit);
            }
            2 => arrived.due_records = db.due_records(parts, round.due.unwrap_or(0)),
            3 => {
                if let Some(plan) = &round.pending {
                    let now = Instant::now();
                    self.late.look(parts, round.highest, Writers::InOrder, now);
                    if round.sweep.is_some() {
                        self.late.read_again(parts, 0);
                    }
                    let pages = self.late.from_there(&plan.pages);
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
            5 => arrived.blocked_parts = round.sweep.map(|_| db.blocked_parts(parts)),
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

    pub(super) fn take(&mut self) {
        if self.expired {
            return;
        }
        for work in self.engine.lanes.take_work() {
            let running = self.running.iter().map(|(work, _)| work);
            let paused = self.paused.iter().any(|id| id == name(work.handler));
            self.laws.started(&self.db, &work, running, paused);
            self.running.push((work, self.engine.leases.fence()));
        }
    }

    pub(super) fn finish(&mut self, at: usize, end: End) {
        if self.running.is_empty() {
            return;
        }
        let (work, fence) = self.running.remove(at % self.running.len());
        let transactional = self.engine.lanes.is_transactional(work.handler);
        let mut kept = true;
        if transactional && matches!(end, End::Completed) {
            let row = completed_row(&work, name(work.handler));
            kept = self.db.complete(&fence, &row, work.read);
            let ours = self.db.is_ours(&fence, work.part);
            self.laws.transaction(&work, kept, ours);
        }
        self.laws.ended(&work, end, kept);
        self.engine.lanes.finished(&work, decision(&work, end));
    }

    pub(super) fn take_batch(&mut self) {
        if self.batch.is_some() {
            return;
        }
        if let Some(unwritten) = self.engine.lanes.take_unwritten() {
            self.engine.will_block(unwritten.batch.parts());
            let fence = self.engine.leases.fence();
            self.batch = Some(Taken {
                unwritten,
                fence,
                committed: false,
            });
        }
    }

    pub(super) fn commit(&mut self) {
        if let Some(taken) = self.batch.as_mut().filter(|taken| !taken.committed) {
            self.db.settle(&taken.fence, &taken.unwritten.batch);
            taken.committed = true;
        }
    }

    /// The dispatcher is told that its batch is written.
    pub(super) fn acknowledge(&mut self) {
        self.commit();
        if let Some(taken) = self.batch.take() {
            self.engine.lanes.written(taken.unwritten);
        }
    }

    pub(super) fn write_all(&mut self) {
        self.acknowledge();
        self.take_batch();
        self.acknowledge();
    }

    /// The nth delivery that is not finished, or that failed.
    pub(super) fn pick(&self, at: usize, failed: bool) -> Option<i64> {
        let rows = self.db.deliveries.iter();
        let open = rows.filter(|(_, row)| match failed {
            true => row.status == "failed",
            false => row.is_open(),
        });
        let open: Vec<i64> = open.map(|(id, _)| *id).collect();
        open.get(at % open.len().max(1)).copied()
    }

    pub(super) fn replay(&mut self, at: usize) {
        if let Some(id) = self.pick(at, true) {
            self.db.replay(id);
        }
    }

    pub(super) fn discard(&mut self, at: usize, failed: bool) {
        if let Some(id) = self.pick(at, failed) {
            self.db.discard(id);
            let row = &self.db.deliveries[&id];
            self.laws.discarded(row.record, row.handler);
        }
    }
}

fn name(handler: HandlerIx) -> &'static str {
    HANDLERS[usize::from(handler)]
}

pub(super) fn decision(work: &Work, end: End) -> Decision {
    let error = HandlerError::permanent("no");
    match end {
        End::Completed => Decision::Completed(Completion::Handled),
        End::RetryIn(micros) => Decision::RetryAt {
            at: jiff::Timestamp::UNIX_EPOCH,
            delay: Duration::from_micros(u64::from(micros)),
            next: Attempt {
                number: work.attempt.number + 1,
                failure_count: work.attempt.failure_count + 1,
                first_failed_at: None,
            },
            error,
        },
        End::Failed => Decision::Failed {
            error,
            because: FailedBecause::Permanent,
        },
    }
}
