//! What must hold whatever happens.

use std::collections::{HashMap, HashSet};

use crate::record::RecordStatus;
use crate::runtime::lane::Work;
use crate::runtime::tests::{
    HANDLERS, SKIPS,
    db::{Db, RecordRow},
    world::End,
};

/// A record and a handler.
type Pair = (i64, &'static str);

/// What the dispatcher did. It forgets with it, so that what was done before a crash or a lost
/// lease, and may not have been written, does not count.
pub(super) struct Laws {
    stop_on_failure: bool,
    /// Started in this life, with the attempt.
    started: HashSet<(i64, &'static str, u32)>,
    completed: HashSet<Pair>,
    /// Ended in this life such that the lane goes on.
    passed: HashSet<Pair>,
    parts: HashMap<i64, u16>,
    /// In all lives.
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
            parts: HashMap::new(),
            ever_completed: HashSet::new(),
            discarded: HashSet::new(),
            effects: HashSet::new(),
        }
    }

    /// What the dispatcher knew of these partitions is gone.
    pub(super) fn restarted(&mut self, lost: impl Fn(u16) -> bool) {
        let is_kept = |id: &i64| self.parts.get(id).is_some_and(|part| !lost(*part));
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
        let (id, handler) = (work.record.id, HANDLERS[work.handler.place()]);
        let beside = running.find(|other| {
            other.handler == work.handler
                && (other.record.id == id
                    || !other.is_detached
                        && !work.is_detached
                        && other.record.key == work.record.key)
        });
        assert!(beside.is_none(), "{work:?} starts beside {beside:?}");
        let attempt = work.attempt.number;
        let new = self.started.insert((id, handler, attempt));
        assert!(new, "attempt {attempt} of {id} by {handler} starts again");
        let again = self.completed.contains(&(id, handler));
        assert!(!again, "{id} was completed by {handler} and starts again");
        self.parts.insert(id, work.part);
        if !work.is_detached {
            self.is_first(db, id, handler);
        }
    }

    /// An invocation that had its slot was not started.
    pub(super) fn not_started(&mut self, work: &Work) {
        let handler = HANDLERS[work.handler.place()];
        self.started
            .remove(&(work.record.id, handler, work.attempt.number));
    }

    /// Nothing stands before this record in its lane.
    fn is_first(&self, db: &Db, id: i64, handler: &'static str) {
        let row = &db.records[&id];
        let earlier = |other: i64, than: &RecordRow| match (than.due, row.due) {
            (None, None) => other < id,
            (Some(than), Some(due)) => (than, other) < (due, id),
            // In the order in which they are read.
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
            // Split without it: it had ended before.
            (None, status) => status != RecordStatus::Pending && status != RecordStatus::Scheduled,
        };
        in_db || self.passed.contains(&(id, handler))
    }

    /// A handler's own transaction with the completion in it: `kept` or rolled back.
    pub(super) fn transaction(&mut self, work: &Work, kept: bool, ours: bool) {
        let pair = (work.record.id, HANDLERS[work.handler.place()]);
        if kept {
            assert!(self.effects.insert(pair), "{pair:?} had its effect twice");
        } else {
            let excused = !ours || self.discarded.contains(&pair);
            assert!(excused, "{pair:?} was ours, and rolled back");
        }
    }

    /// An invocation ended; `kept` says whether what it did was not rolled back.
    pub(super) fn ended(&mut self, work: &Work, end: End, kept: bool) {
        let handler = work.handler.place();
        let pair = (work.record.id, HANDLERS[handler]);
        let passes = match end {
            End::Completed => {
                self.completed.insert(pair);
                if kept {
                    self.ever_completed.insert(pair);
                }
                true
            }
            End::RetryIn(_) => !self.stop_on_failure,
            End::Failed => !self.stop_on_failure || SKIPS[handler],
        };
        if passes {
            self.passed.insert(pair);
        }
    }

    /// In the end every record has been with all its handlers.
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
