//! A dispatcher and its database, without tasks and SQL. It takes one step at a time, like the
//! event loop, and the [`Laws`] check each step.

use std::{collections::BTreeSet, mem, sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::runtime::tests::{HANDLERS, Setup, db::Db, laws::Laws, reading::Fetch};
use crate::{
    handler::FailureKind,
    record::{Attempt, DeliveryStatus, Partition, failure::Failure},
    registry::HandlerIx,
    retry::FailedBecause,
    runtime::{
        engine::Engine,
        fetch::LateWriters,
        lane::{AttemptEnd, Burst, OutgoingBatch, Work, completed_row},
    },
    store::{Fence, Lease},
};

const PARTITIONS: [Partition; 2] = [Partition::new(0), Partition::new(1)];

pub(super) struct World {
    setup: Setup,
    pub(super) db: Db,
    pub(super) engine: Engine,
    pub(super) late: LateWriters,
    pub(super) fetch: Option<Fetch>,
    batch: Option<WriteInProgress>,
    /// The running records, each with the rest of its burst and the fence at its start.
    pub(super) running: Vec<(Work, Vec<Work>, Arc<Fence>)>,
    /// The next fetch is a sweep.
    pub(super) sweep: bool,
    pub(super) paused: Vec<String>,
    /// Another process that takes partitions.
    peer: Uuid,
    /// The leases may have expired, and the dispatcher knows it.
    is_expired: bool,
    pub(super) laws: Laws,
}

/// A batch that is being written.
struct WriteInProgress {
    outgoing: OutgoingBatch,
    fence: Arc<Fence>,
    /// The leases that the database refused. `None`: the batch is not committed yet.
    refused: Option<Vec<Lease>>,
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
            peer: Uuid::now_v7(),
            is_expired: false,
            laws: Laws::new(setup.stop_on_failure),
        };
        let owner = world.engine.leases().owner();
        PARTITIONS
            .iter()
            .for_each(|partition| world.db.set_owner(*partition, owner));
        world.claim(true);
        world
    }

    /// The process loses its memory. `commit`: the database has written the batch that was on its
    /// way.
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
        PARTITIONS
            .iter()
            .for_each(|partition| self.db.set_owner(*partition, owner));
        self.claim(true);
        self.laws.restarted(|_| true);
        let paused = self.paused.clone();
        self.engine.apply_pauses(&paused);
    }

    /// Another process takes a partition whose lease has expired, and completes some records.
    pub(super) fn peer_takes(&mut self, partition: Partition, work: u8) {
        self.take();
        self.is_expired = true;
        self.db.set_owner(partition, self.peer);
        for _ in 0..work {
            for done in self.db.complete_next(partition) {
                self.laws.completed_elsewhere(done);
            }
        }
    }

    /// Renews the leases. `all`: lost partitions come back.
    pub(super) fn claim(&mut self, all: bool) {
        self.end_fetch(true);
        let owner = self.engine.leases().owner();
        if all {
            let lost = self.db.leases.iter();
            let lost = lost.filter(|(_, (other, _))| *other != owner);
            let lost: Vec<Partition> = lost.map(|(partition, _)| *partition).collect();
            lost.into_iter()
                .for_each(|partition| self.db.set_owner(partition, owner));
        }
        let leases = self.db.leases_of(owner);
        let changes = self.engine.on_claimed(&leases, Instant::now());
        self.drop_partitions(&changes.lost);
        self.sweep |= !changes.gained.is_empty();
        self.is_expired = false;
    }

    fn drop_partitions(&mut self, lost: &[Partition]) {
        let is_lost = |partition: Partition| lost.contains(&partition);
        let cancelled = self
            .running
            .extract_if(.., |(work, ..)| is_lost(work.partition))
            .map(|(work, ..)| work.handler);
        let cancelled: Vec<HandlerIx> = cancelled.collect();
        if !lost.is_empty() {
            self.engine.drop_partitions(lost, &cancelled);
        }
        self.laws.restarted(is_lost);
    }

    /// Another process takes a partition, and this one does not notice.
    pub(super) fn peer_takes_unnoticed(&mut self, partition: Partition) {
        self.db.set_owner(partition, self.peer);
    }

    /// Keeps `share` partitions open: closes the others, or opens closed ones again.
    pub(super) fn keep(&mut self, share: usize) {
        self.end_fetch(true);
        self.sweep |= self.engine.keep_open(share);
    }

    /// Drained partitions go to another process, which completes some records, and come back. This
    /// is no fault: no record may run twice.
    pub(super) fn hand_over(&mut self, work: u8) {
        self.end_fetch(true);
        let fence = self.engine.leases().fence();
        for lease in self.engine.claim_request(BTreeSet::new(), true).to_release {
            if !self.db.is_ours(&fence, lease.partition) {
                // A peer had taken it before, so the last batch was not written.
                self.laws
                    .restarted(|partition| partition == lease.partition);
            }
            self.db.set_owner(lease.partition, self.peer);
            for done in (0..work).flat_map(|_| self.db.complete_next(lease.partition)) {
                self.laws.completed_elsewhere(done);
            }
        }
        self.claim(true);
    }

    /// Pauses or resumes a handler. Bursts that have their slots may still start.
    pub(super) fn pause(&mut self, handler: HandlerIx, paused: bool) {
        self.claim(false);
        self.take();
        let id = HANDLERS[handler.index()];
        self.paused.retain(|other| other != id);
        if paused {
            self.paused.push(id.to_owned());
        }
        let paused = self.paused.clone();
        self.sweep |= self.engine.apply_pauses(&paused);
    }

    pub(super) fn take(&mut self) {
        if self.is_expired {
            return;
        }
        for Burst { first, rest } in self.engine.take_bursts() {
            let is_paused = self.paused.iter().any(|id| id == name(first.handler));
            assert!(
                !is_paused,
                "{first:?} starts although its handler is paused"
            );
            self.start(first, rest, self.engine.leases().fence());
        }
    }

    fn start(&mut self, work: Work, rest: Vec<Work>, fence: Arc<Fence>) {
        let running = self.running.iter().map(|(work, ..)| work);
        self.laws.started(&self.db, &work, running);
        self.running.push((work, rest, fence));
    }

    pub(super) fn finish(&mut self, at: usize, end: End) {
        if self.running.is_empty() {
            return;
        }
        let (work, mut rest, fence) = self.running.remove(at % self.running.len());
        let is_transactional = self.setup.is_transactional && work.handler.index() == 0;
        let mut has_committed = true;
        if is_transactional && matches!(end, End::Completed) {
            let row = completed_row(&work, name(work.handler));
            has_committed = self.db.complete(&fence, &row, work.from_row);
            let is_ours = self.db.is_ours(&fence, work.partition);
            self.laws.transaction(&work, has_committed, is_ours);
        }
        self.laws.ended(&work, end, has_committed);
        let next = self.engine.on_finished(&work, attempt_end(&work, end));
        if !matches!(end, End::Completed) || rest.is_empty() {
            assert_eq!(next, None, "nothing follows in the burst of {work:?}");
            return;
        }
        let work = rest.remove(0);
        assert_eq!(next, Some(work.record.id), "{work:?} is next in its burst");
        if self.is_expired {
            self.engine.on_not_started(work);
        } else {
            // A handler that was paused meanwhile may finish its burst.
            self.start(work, rest, fence);
        }
    }

    /// The worker does not start an invocation, because its permit is no longer valid.
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
        if let Some(outgoing) = self.engine.take_batch(0) {
            let fence = self.engine.leases().fence();
            self.batch = Some(WriteInProgress {
                outgoing,
                fence,
                refused: None,
            });
        }
    }

    pub(super) fn commit(&mut self) {
        if let Some(taken) = self.batch.as_mut()
            && taken.refused.is_none()
        {
            self.db.settle(&taken.fence, taken.outgoing.batch());
            let leases = taken.fence.leases.iter().copied();
            let is_refused = |lease: &Lease| !self.db.is_ours(&taken.fence, lease.partition);
            taken.refused = Some(leases.filter(is_refused).collect());
        }
    }

    /// The dispatcher gets the answer to its batch, with the refused leases.
    pub(super) fn acknowledge(&mut self) {
        self.commit();
        if let Some(taken) = self.batch.take() {
            let refused = taken.refused.unwrap_or_default();
            let lost = self.engine.on_refused(&refused, Instant::now());
            self.drop_partitions(&lost);
            self.engine.on_written(taken.outgoing);
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
    HANDLERS[handler.index()]
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
