//! [`Laws`]: invariants that hold after every step.

use std::collections::{HashMap, HashSet};

use crate::record::{Partition, RecordStatus};
use crate::runtime::lane::Work;
use crate::runtime::tests::{
    HANDLERS, SKIPS_FAILED,
    db::{Db, RecordRow},
    world::End,
};

/// A record and a handler.
type Pair = (i64, &'static str);

/// The history of the dispatcher, and its invariants. After a crash or a lost lease, results that
/// may not have been written do not count.
pub(super) struct Laws {
    stop_on_failure: bool,
    /// Started since the last crash or lost lease, with the attempt.
    started: HashSet<(i64, &'static str, u32)>,
    completed: HashSet<Pair>,
    /// Ended since then, so that the next record of the lane may run.
    passed: HashSet<Pair>,
    partitions: HashMap<i64, Partition>,
    /// Since the beginning.
    ever_completed: HashSet<Pair>,
    discarded: HashSet<Pair>,
    effects: HashSet<Pair>,
}

/// The handlers that an event goes to.
pub(super) fn route(event: &str) -> &'static [&'static str] {
    match event {
        "one" => &HANDLERS[..1],
        _ => &HANDLERS,
    }
}

impl Laws {
    pub(super) fn new(stop_on_failure: bool) -> Self {
        Self {
            stop_on_failure,
            started: HashSet::new(),
            completed: HashSet::new(),
            passed: HashSet::new(),
            partitions: HashMap::new(),
            ever_completed: HashSet::new(),
            discarded: HashSet::new(),
            effects: HashSet::new(),
        }
    }

    /// The dispatcher has forgotten these partitions.
    pub(super) fn restarted(&mut self, lost: impl Fn(Partition) -> bool) {
        let is_kept = |id: &i64| {
            self.partitions
                .get(id)
                .is_some_and(|partition| !lost(*partition))
        };
        self.started.retain(|(id, ..)| is_kept(id));
        self.completed.retain(|(id, _)| is_kept(id));
        self.passed.retain(|(id, _)| is_kept(id));
    }

    pub(super) fn completed_elsewhere(&mut self, pair: Pair) {
        self.ever_completed.insert(pair);
    }

    pub(super) fn discarded(&mut self, record: i64, handler: &'static str) {
        self.discarded.insert((record, handler));
    }

    /// An invocation starts.
    pub(super) fn started<'a>(
        &mut self,
        db: &Db,
        work: &Work,
        mut running: impl Iterator<Item = &'a Work>,
    ) {
        let (id, handler) = (work.record.id, HANDLERS[work.handler.index()]);
        let concurrent = running.find(|other| {
            other.handler == work.handler
                && (other.record.id == id
                    || !other.is_detached
                        && !work.is_detached
                        && other.record.key == work.record.key)
        });
        assert!(
            concurrent.is_none(),
            "{work:?} starts while {concurrent:?} runs"
        );
        let attempt = work.attempt.number;
        let is_new = self.started.insert((id, handler, attempt));
        assert!(
            is_new,
            "attempt {attempt} of {id} by {handler} starts again"
        );
        let is_completed = self.completed.contains(&(id, handler));
        assert!(
            !is_completed,
            "{id} was completed by {handler} and starts again"
        );
        self.partitions.insert(id, work.partition);
        if !work.is_detached {
            self.is_first(db, id, handler);
        }
    }

    /// An invocation that had its slot was not started.
    pub(super) fn not_started(&mut self, work: &Work) {
        let handler = HANDLERS[work.handler.index()];
        self.started
            .remove(&(work.record.id, handler, work.attempt.number));
    }

    /// No earlier record of the lane blocks this one.
    fn is_first(&self, db: &Db, id: i64, handler: &'static str) {
        let row = &db.records[&id];
        let earlier = |other: i64, than: &RecordRow| match (than.due, row.due) {
            (None, None) => other < id,
            (Some(than), Some(due)) => (than, other) < (due, id),
            // Either may be first: they run in the order in which they are read.
            (Some(_), None) | (None, Some(_)) => false,
        };
        for (other, than) in &db.records {
            let same_lane = than.key == row.key && route(than.event).contains(&handler);
            if same_lane && earlier(*other, than) {
                let passed = self.has_passed(db, *other, handler);
                assert!(passed, "{id} starts before {other} ended for {handler}");
            }
        }
        let of_lane = |other: &RecordRow| other.key == row.key;
        let own = db.deliveries.iter();
        let own = own.filter(|(_, other)| other.record == id && other.handler == handler);
        let own = own.map(|(at, _)| *at).next().unwrap_or(i64::MAX);
        for (_, other) in db.deliveries.range(..own) {
            if other.handler == handler && of_lane(&db.records[&other.record]) {
                let passed = self.has_passed(db, other.record, handler);
                let other = other.record;
                assert!(passed, "{id} starts although {other} blocks {handler}");
            }
        }
    }

    /// Whether later records of the lane need not wait for this one.
    fn has_passed(&self, db: &Db, id: i64, handler: &'static str) -> bool {
        let mut rows = db.deliveries.values();
        let row = rows.find(|row| row.record == id && row.handler == handler);
        let in_db = match (row, db.records[&id].status) {
            (Some(row), _) => !row.blocking,
            // It has no row in a split record, so it had ended before.
            (None, status) => status != RecordStatus::Pending && status != RecordStatus::Scheduled,
        };
        in_db || self.passed.contains(&(id, handler))
    }

    /// A handler's own transaction, with the completion in it, has committed or was rolled back.
    pub(super) fn transaction(&mut self, work: &Work, has_committed: bool, is_ours: bool) {
        let pair = (work.record.id, HANDLERS[work.handler.index()]);
        if has_committed {
            assert!(self.effects.insert(pair), "{pair:?} had its effect twice");
        } else {
            let may_roll_back = !is_ours || self.discarded.contains(&pair);
            assert!(may_roll_back, "{pair:?} was ours, and rolled back");
        }
    }

    /// An invocation ended. `has_committed`: its effects were not rolled back.
    pub(super) fn ended(&mut self, work: &Work, end: End, has_committed: bool) {
        let handler = work.handler.index();
        let pair = (work.record.id, HANDLERS[handler]);
        let passes = match end {
            End::Completed => {
                self.completed.insert(pair);
                if has_committed {
                    self.ever_completed.insert(pair);
                }
                true
            }
            End::RetryIn(_) => !self.stop_on_failure,
            End::Failed => !self.stop_on_failure || SKIPS_FAILED[handler],
        };
        if passes {
            self.passed.insert(pair);
        }
    }

    /// At the end all handlers of every record have completed it, or it was discarded for them.
    pub(super) fn nothing_is_lost(&self, db: &Db) {
        for (id, row) in &db.records {
            for handler in route(row.event) {
                let pair = (*id, *handler);
                let done = self.ever_completed.contains(&pair) || self.discarded.contains(&pair);
                assert!(done, "{pair:?} was never completed");
            }
        }
    }
}
