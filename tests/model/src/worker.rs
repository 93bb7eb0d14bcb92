//! What a process has in memory. Gone when it crashes.

#[cfg(doc)]
use crate::mistake::Mistake;
use crate::{
    late_writers::LateWriters,
    scenario::{PARTITIONS, RECORDS, WORKERS},
};

/// Whether a process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Life {
    /// May join.
    #[default]
    Unborn,
    /// Works.
    Running,
    /// Finishes what runs, and starts nothing.
    Leaving,
    /// Left, or crashed: does not come back. Its successor would be another process.
    Gone,
}

/// The lease of a partition, as far as the process knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KnownLease {
    /// Zero: not owned.
    pub epoch: u8,
    /// Which tenure this is in truth; see [`crate::world::History`]. The process cannot know.
    pub tenure: u8,
    /// The watermark: read up to this id.
    pub after: u8,
    /// To be released: the process starts nothing in it.
    pub draining: bool,
    /// The fence has refused a batch, so a peer owns the partition. The process neither reads nor
    /// starts anything in it until the answer to a claim. It does not forget the lease: the answer
    /// to an earlier claim may be on its way.
    pub refused: bool,
}

/// Where a record is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Place {
    /// Not in memory.
    #[default]
    Out,
    /// In its lane.
    Waiting,
    /// Its handler runs.
    Running,
    /// Its handler has returned; that is not written yet.
    Ran,
}

/// What the reading task does: it fetches or claims, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reading {
    /// Nothing.
    #[default]
    Idle,
    /// A claim's statement has begun, and has seen which processes have a row.
    Claiming {
        /// By process.
        rows: [bool; WORKERS],
        /// See below.
        valid: bool,
    },
    /// The database has answered a claim with epochs; the process does not know yet. `valid`
    /// until the lease has run out, counted from before it was asked for.
    Claimed {
        /// By partition; zero: not owned.
        epochs: [u8; PARTITIONS],
        /// What is true: see [`KnownLease::tenure`].
        tenures: [u8; PARTITIONS],
        /// Not run out since.
        valid: bool,
    },
    /// Has asked for the writers, and will read from there up to there.
    Looked {
        /// By partition.
        from: [u8; PARTITIONS],
        /// By partition; only what comes late in a statement of its own has an end.
        to: [u8; PARTITIONS],
        /// There were some.
        writers: bool,
    },
    /// Has read these records, as bits; they are not in their lanes yet.
    Read {
        /// What was found.
        rows: u8,
        /// There were writers at the look.
        writers: bool,
    },
}

/// A batch that was sent and is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch {
    /// As bits.
    pub records: u8,
    /// The fence, as it was when the batch was made.
    pub epochs: [u8; PARTITIONS],
    /// See [`KnownLease::tenure`].
    pub tenures: [u8; PARTITIONS],
    /// Where leases are not locked: which of them were this one's when the statement began.
    pub passed: Option<[bool; PARTITIONS]>,
}

/// Whether the process polls or listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Listening {
    /// Polls.
    #[default]
    Off,
    /// Has set its flag, and reads once more.
    Announced,
    /// Waits for a notification.
    On,
    /// Was notified and reads. Its flag is still set.
    Notified,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Worker {
    /// Whether it is there.
    pub life: Life,
    /// Its clock says that its leases have not run out.
    pub valid: bool,
    /// By partition.
    pub leases: [KnownLease; PARTITIONS],
    /// From where to read again.
    pub late: LateWriters,
    /// What the reading task does.
    pub reading: Reading,
    /// By record.
    pub memory: [Place; RECORDS],
    /// What the writing task does.
    pub writing: Option<Batch>,
    /// Whether it polls or listens.
    pub listening: Listening,
    /// A notification has arrived.
    pub notified: bool,
    /// Only with [`Mistake::TakesFlagDownLater`]: on its way.
    pub taking_flag_down: bool,
    /// Only with [`Mistake::ReapsLater`]: the process that it has found dead.
    pub reaping: Option<u8>,
}

impl Worker {
    /// A process that has just been started.
    #[must_use]
    pub fn running() -> Self {
        Self {
            life: Life::Running,
            ..Self::default()
        }
    }

    /// Neither crashed nor left.
    #[must_use]
    pub fn lives(&self) -> bool {
        matches!(self.life, Life::Running | Life::Leaving)
    }

    /// Nothing is started until the answer to a claim that is sent from now on.
    pub fn lapse(&mut self) {
        self.valid = false;
        match &mut self.reading {
            Reading::Claiming { valid, .. } | Reading::Claimed { valid, .. } => *valid = false,
            Reading::Idle | Reading::Looked { .. } | Reading::Read { .. } => {}
        }
    }

    /// Which partitions it reads: those that it owns, as far as it knows.
    #[must_use]
    pub fn holds(&self) -> [bool; PARTITIONS] {
        self.leases.map(|held| held.epoch > 0 && !held.refused)
    }

    /// The highest id it has seen.
    #[must_use]
    pub fn highest(&self) -> u8 {
        self.leases.iter().map(|held| held.after).max().unwrap_or(0)
    }

    /// Forgets everything about a partition; `in_partition` tells which records are in it.
    pub fn drop_partition(&mut self, partition: usize, in_partition: [bool; RECORDS]) {
        self.leases[partition] = KnownLease::default();
        self.forget(in_partition);
    }

    /// Forgets these records.
    pub fn forget(&mut self, in_partition: [bool; RECORDS]) {
        for (place, _) in self
            .memory
            .iter_mut()
            .zip(in_partition)
            .filter(|(_, of)| *of)
        {
            *place = Place::Out;
        }
    }
}
