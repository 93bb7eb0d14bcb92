//! A dispatcher and its database, without tasks and SQL: does one thing at a time, as the loop in
//! `event_loop` does, and asks the [`Laws`] whether it may.

use std::{collections::BTreeSet, mem, sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::runtime::tests::{HANDLERS, Setup, db::Db, laws::Laws, reading::Fetch};
use crate::{
    handler::FailureKind,
    record::{Attempt, DeliveryStatus, failure::Failure},
    registry::HandlerIx,
    retry::FailedBecause,
    runtime::{
        engine::Engine,
        fetch::LateWriters,
        lane::{AttemptEnd, Burst, OutgoingBatch, Work, completed_row},
    },
    store::Fence,
};

pub(super) struct World {
    setup: Setup,
    pub(super) db: Db,
    pub(super) engine: Engine,
    pub(super) late: LateWriters,
    pub(super) fetch: Option<Fetch>,
    batch: Option<Taken>,
    /// What runs, each with what may follow in its burst and the fence that it was started with.
    pub(super) running: Vec<(Work, Vec<Work>, Arc<Fence>)>,
    /// The loop has been told to read everything again.
    pub(super) sweep: bool,
    pub(super) paused: Vec<String>,
    thief: Uuid,
    /// The leases have expired, and the dispatcher knows that they may have.
    expired: bool,
    pub(super) laws: Laws,
}

/// A batch that is being written.
struct Taken {
    unwritten: OutgoingBatch,
    fence: Arc<Fence>,
    committed: bool,
}

/// How an invocation ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Completed,
    RetryIn(u8),
    Failed,
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let mut world = Self {
            setup,
            db: Db::default(),
            engine: setup.engine(),
            late: LateWriters::default(),
            fetch: None,
            batch: None,
            running: Vec::new(),
            sweep: true,
            paused: Vec::new(),
            thief: Uuid::now_v7(),
            expired: false,
            laws: Laws::new(setup.stop_on_failure),
        };
        (0..2).for_each(|part| world.db.give(part, world.engine.leases().owner()));
        world.claim(true);
        world
    }

    /// All memory is gone; a batch that was on its way may have arrived.
    pub(super) fn crash(&mut self, commit: bool) {
        if commit {
            self.commit();
        }
        let db = mem::take(&mut self.db);
        let laws = mem::replace(&mut self.laws, Laws::new(self.setup.stop_on_failure));
        let paused = mem::take(&mut self.paused);
        *self = Self {
            paused,
            laws,
            ..Self::new(self.setup)
        };
        let owner = self.engine.leases().owner();
        self.db = db;
        (0..2).for_each(|part| self.db.give(part, owner));
        self.claim(true);
        self.laws.restarted(|_| true);
        let paused = self.paused.clone();
        self.engine.apply_pauses(&paused);
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
        self.end_fetch(true);
        let owner = self.engine.leases().owner();
        if all {
            let lost = self.db.leases.iter();
            let lost = lost.filter(|(_, (other, _))| *other != owner);
            let lost: Vec<u16> = lost.map(|(part, _)| *part).collect();
            lost.into_iter().for_each(|part| self.db.give(part, owner));
        }
        let leases = self.db.leases_of(owner);
        let changes = self.engine.on_claimed(&leases, Instant::now());
        let lost = |part: u16| changes.lost.contains(&part);
        let mut stopped: Vec<HandlerIx> = Vec::new();
        self.running.retain(|(work, ..)| {
            if lost(work.part) {
                stopped.push(work.handler);
            }
            !lost(work.part)
        });
        if !changes.lost.is_empty() {
            self.engine.drop_partitions(&changes.lost, &stopped);
        }
        self.laws.restarted(lost);
        self.sweep |= !changes.gained.is_empty();
        self.expired = false;
    }

    /// This process is to own so many partitions: others are closed, or opened again.
    pub(super) fn keep(&mut self, share: usize) {
        self.end_fetch(true);
        self.sweep |= self.engine.keep_open(share);
    }

    /// What is drained goes to another process, which does some work, and comes back. No fault:
    /// nothing may be done twice.
    pub(super) fn hand_over(&mut self, work: u8) {
        self.end_fetch(true);
        let fence = self.engine.leases().fence();
        for lease in self.engine.claim_request(BTreeSet::new()).to_release {
            if !self.db.is_ours(&fence, lease.part) {
                // It was stolen before: what was written last, was not.
                self.laws.restarted(|part| part == lease.part);
            }
            self.db.give(lease.part, self.thief);
            for done in (0..work).flat_map(|_| self.db.work_off(lease.part)) {
                self.laws.completed_elsewhere(done);
            }
        }
        self.claim(true);
    }

    /// What has its slot when a handler is paused may still start.
    pub(super) fn pause(&mut self, handler: HandlerIx, paused: bool) {
        self.claim(false);
        self.take();
        let id = HANDLERS[handler.place()];
        self.paused.retain(|other| other != id);
        if paused {
            self.paused.push(id.to_owned());
        }
        let paused = self.paused.clone();
        self.sweep |= self.engine.apply_pauses(&paused);
    }

    pub(super) fn take(&mut self) {
        if self.expired {
            return;
        }
        for Burst { first, rest } in self.engine.take_bursts() {
            let paused = self.paused.iter().any(|id| id == name(first.handler));
            assert!(!paused, "{first:?} starts although its handler is paused");
            self.start(first, rest, self.engine.leases().fence());
        }
    }

    fn start(&mut self, work: Work, then: Vec<Work>, fence: Arc<Fence>) {
        let running = self.running.iter().map(|(work, ..)| work);
        self.laws.started(&self.db, &work, running);
        self.running.push((work, then, fence));
    }

    pub(super) fn finish(&mut self, at: usize, end: End) {
        if self.running.is_empty() {
            return;
        }
        let (work, mut then, fence) = self.running.remove(at % self.running.len());
        let transactional = self.setup.transactional && work.handler.place() == 0;
        let mut kept = true;
        if transactional && matches!(end, End::Completed) {
            let row = completed_row(&work, name(work.handler));
            kept = self.db.complete(&fence, &row, work.from_row);
            let ours = self.db.is_ours(&fence, work.part);
            self.laws.transaction(&work, kept, ours);
        }
        self.laws.ended(&work, end, kept);
        let next = self.engine.on_finished(&work, attempt_end(&work, end));
        if !matches!(end, End::Completed) || then.is_empty() {
            assert_eq!(next, None, "nothing follows in the burst of {work:?}");
            return;
        }
        let work = then.remove(0);
        assert_eq!(next, Some(work.record.id), "{work:?} is next in its burst");
        if self.expired {
            self.engine.on_not_started(work);
        } else {
            // A handler that was paused meanwhile finishes its burst, or gives it back.
            self.start(work, then, fence);
        }
    }

    /// The process hesitated, and then it was too late to be sure.
    pub(super) fn not_started(&mut self, at: usize) {
        if self.running.is_empty() {
            return;
        }
        let (work, ..) = self.running.remove(at % self.running.len());
        self.laws.not_started(&work);
        self.engine.on_not_started(work);
    }

    pub(super) fn take_batch(&mut self) {
        if self.batch.is_some() {
            return;
        }
        if let Some(unwritten) = self.engine.take_batch(0) {
            let fence = self.engine.leases().fence();
            self.batch = Some(Taken {
                unwritten,
                fence,
                committed: false,
            });
        }
    }

    pub(super) fn commit(&mut self) {
        if let Some(taken) = self.batch.as_mut().filter(|taken| !taken.committed) {
            self.db.settle(&taken.fence, taken.unwritten.batch());
            taken.committed = true;
        }
    }

    /// The dispatcher is told that its batch is written.
    pub(super) fn acknowledge(&mut self) {
        self.commit();
        if let Some(taken) = self.batch.take() {
            self.engine.on_written(taken.unwritten);
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
            true => row.status == DeliveryStatus::Failed,
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
    HANDLERS[handler.place()]
}

pub(super) fn attempt_end(work: &Work, end: End) -> AttemptEnd {
    let failure = Failure {
        kind: FailureKind::Permanent,
        text: "no".to_owned(),
        fingerprint: String::new(),
    };
    match end {
        End::Completed => AttemptEnd::Handled,
        End::RetryIn(micros) => AttemptEnd::Retry {
            delay: Duration::from_micros(u64::from(micros)),
            next: Attempt {
                number: work.attempt.number + 1,
                failure_count: work.attempt.failure_count + 1,
                first_failed_at: None,
            },
            failure,
        },
        End::Failed => AttemptEnd::Failed {
            because: FailedBecause::Permanent,
            failure,
        },
    }
}
