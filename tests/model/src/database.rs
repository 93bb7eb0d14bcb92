//! The database, and the statements on it: each function is one statement, or one transaction.

use crate::{
    mistake::Mistake,
    scenario::{PARTITIONS, RECORDS, Scenario, TRANSACTIONS, WORKERS},
};

/// A partition's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Lease {
    /// The process that owns it.
    pub owner: Option<u8>,
    /// Zero: never taken.
    pub epoch: u8,
    /// By the database's clock.
    pub expired: bool,
}

/// The row of a process, and its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Instance {
    /// It exists.
    pub row: bool,
    /// The session lock is held.
    pub session: bool,
    /// Its heartbeat is as old as a lease.
    pub stale: bool,
    /// The session has been gone for the time of grace.
    pub quiet: bool,
    /// Its flag: it wants to be notified.
    pub listening: bool,
}

/// How far a transaction that publishes has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stage {
    /// Not begun.
    #[default]
    Ahead,
    /// Only with [`Mistake::FlagOfAnOldSnapshot`]: what it will see is decided.
    Early,
    /// Holds the lock on the table.
    Open,
    /// Its rows can be seen, its lock is not gone yet, no process was notified.
    Visible,
    /// Over.
    Committed,
    /// Over, and as if it had never been.
    RolledBack,
}

/// A transaction that publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Transaction {
    /// How far it has come.
    pub stage: Stage,
    /// How many records it has written.
    pub written: u8,
    /// A process listened when it wrote one.
    pub notifies: bool,
    /// A process listened when it began: what an old snapshot sees.
    pub saw_listener: bool,
}

/// A published record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Record {
    /// Its transaction.
    pub transaction: u8,
    /// Its key.
    pub key: u8,
    /// Otherwise it is pending.
    pub completed: bool,
}

/// All tables, and what is known of sessions and locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Database {
    /// By partition.
    pub leases: [Lease; PARTITIONS],
    /// With [`Mistake::AsynchronousLeases`], what a crash brings back.
    pub leases_before: [Lease; PARTITIONS],
    /// By process.
    pub instances: [Instance; WORKERS],
    /// Those of the scenario, in its order.
    pub transactions: [Transaction; TRANSACTIONS],
    /// In the order of ids: the place is the id, less one.
    pub records: [Option<Record>; RECORDS],
}

impl Database {
    /// The transactions that hold the lock that is taken before an id is drawn, as bits.
    #[must_use]
    pub fn writers(&self) -> u8 {
        let open = |t: &Transaction| matches!(t.stage, Stage::Open | Stage::Visible);
        let open = self.transactions.iter().map(open);
        open.enumerate().map(|(t, open)| u8::from(open) << t).sum()
    }

    /// Whether a publisher's statement finds a process that listens.
    #[must_use]
    pub fn has_listener(&self) -> bool {
        self.instances.iter().any(|i| i.row && i.listening)
    }

    /// The record with this place, if it can be seen.
    #[must_use]
    pub fn visible(&self, place: usize) -> Option<Record> {
        let record = self.records[place]?;
        let stage = self.stage(record);
        matches!(stage, Stage::Visible | Stage::Committed).then_some(record)
    }

    /// How far a record's transaction has come.
    #[must_use]
    pub fn stage(&self, record: Record) -> Stage {
        self.transactions[usize::from(record.transaction)].stage
    }

    /// Whether these leases are this one's share, or more: `more` is how many above it.
    #[must_use]
    pub fn over_share(&self, scenario: &Scenario, mistake: Option<Mistake>, owned: usize) -> isize {
        let counts =
            |i: &&Instance| i.row && (!i.stale || mistake == Some(Mistake::CountsTheFrozen));
        let members = self.instances.iter().filter(counts).count().max(1);
        let share = scenario.partitions.div_ceil(members);
        owned.cast_signed() - share.cast_signed()
    }

    /// Which processes have a row.
    #[must_use]
    pub fn rows(&self) -> [bool; WORKERS] {
        self.instances.map(|instance| instance.row)
    }

    /// Whether a process that does not own the partition may take it.
    fn is_free(&self, partition: usize, rows: Option<[bool; WORKERS]>) -> bool {
        let Lease { owner, expired, .. } = self.leases[partition];
        let has_row = |owner| rows.is_none_or(|rows| rows[usize::from(owner)]);
        owner.is_none_or(|owner| expired || !has_row(owner))
    }

    /// How many partitions this process has.
    #[must_use]
    pub fn owned(&self, worker: usize) -> usize {
        let owned = |lease: &&Lease| lease.owner.map(usize::from) == Some(worker);
        self.leases.iter().filter(owned).count()
    }

    /// Renews what this process has and takes what is free, up to its share: also what belongs to
    /// a process that is not among the `rows`, if there are any. Returns the partitions that were
    /// taken, and whether another process owned them.
    pub fn claim(
        &mut self,
        worker: usize,
        rows: Option<[bool; WORKERS]>,
        scenario: &Scenario,
        mistake: Option<Mistake>,
    ) -> [Option<bool>; PARTITIONS] {
        self.instances[worker].stale = false;
        let me = u8::try_from(worker).ok();
        for lease in self.leases.iter_mut().filter(|lease| lease.owner == me) {
            lease.expired = false;
        }
        let mut taken = [None; PARTITIONS];
        for (partition, taken) in taken.iter_mut().enumerate().take(scenario.partitions) {
            let room = self.over_share(scenario, mistake, self.owned(worker)) < 0;
            if self.leases[partition].owner == me || !room || !self.is_free(partition, rows) {
                continue;
            }
            let before = self.leases[partition];
            let was_reaped = !before.expired && before.owner.is_some();
            let keeps = mistake == Some(Mistake::SameEpoch) && before.epoch > 0
                || mistake == Some(Mistake::ReapedSameEpoch) && was_reaped;
            self.leases[partition] = Lease {
                owner: me,
                epoch: before.epoch + u8::from(!keeps),
                expired: false,
            };
            if mistake == Some(Mistake::AsynchronousLeases) {
                self.leases_before[partition] = before;
            }
            *taken = Some(before.owner.is_some());
        }
        taken
    }

    /// Whether this process has this partition in this epoch.
    #[must_use]
    pub fn owns(&self, worker: usize, partition: usize, epoch: u8) -> bool {
        let lease = self.leases[partition];
        lease.owner.map(usize::from) == Some(worker) && lease.epoch == epoch
    }

    /// Releases a partition, if this process still owns it.
    pub fn release(&mut self, worker: usize, partition: usize, epoch: u8) {
        if self.owns(worker, partition, epoch) {
            self.leases[partition].owner = None;
            self.leases[partition].expired = false;
        }
    }

    /// Whether a heartbeat or a lease of this process is not old yet.
    #[must_use]
    pub fn may_age(&self, worker: usize) -> bool {
        let Instance { row, stale, .. } = self.instances[worker];
        let leases = self.leases.iter();
        let mut mine = leases.filter(|lease| lease.owner.map(usize::from) == Some(worker));
        row && !stale || mine.any(|lease| !lease.expired)
    }

    /// The leases of this process run out, and its heartbeat is old.
    pub fn expire(&mut self, worker: usize) {
        for lease in &mut self.leases {
            if lease.owner.map(usize::from) == Some(worker) {
                lease.expired = true;
            }
        }
        self.instances[worker].stale = self.instances[worker].row;
    }
}
