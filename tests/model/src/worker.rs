//! What a process has in memory. Gone when it crashes.

#[cfg(doc)]
use crate::mistake::Mistake;
use crate::{
    late::Late,
    scenario::{PARTS, RECORDS, WORKERS},
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

/// A partition, as far as the process knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Held {
    /// Zero: not held.
    pub epoch: u8,
    /// Which tenure this is in truth; see [`crate::world::History`]. The process cannot know.
    pub tenure: u8,
    /// The watermark: read up to this id.
    pub after: u8,
    /// To be given up: nothing is started.
    pub draining: bool,
    /// The fence has refused something: somebody else has it. Nothing is read or started until a
    /// claim says so too. Not simply forgotten: the answer to an earlier claim may be on its way.
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

/// What the task does that reads and claims: one thing at a time.
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
        epochs: [u8; PARTS],
        /// What is true: see [`Held::tenure`].
        tenures: [u8; PARTS],
        /// Not run out since.
        valid: bool,
    },
    /// Has asked for the writers, and will read from there up to there.
    Looked {
        /// By partition.
        from: [u8; PARTS],
        /// By partition; only what comes late in a statement of its own has an end.
        to: [u8; PARTS],
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
    pub epochs: [u8; PARTS],
    /// See [`Held::tenure`].
    pub tenures: [u8; PARTS],
    /// Where leases are not locked: which of them were this one's when the statement began.
    pub passed: Option<[bool; PARTS]>,
}

/// Whether the process is awake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sleep {
    /// Looks again and again.
    #[default]
    Awake,
    /// Has said that it wants to be notified, and looks once more.
    Flagged,
    /// Waits for a notification.
    Asleep,
    /// Was woken and looks; its flag is still up.
    Woken,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Worker {
    /// Whether it is there.
    pub life: Life,
    /// Its clock says that its leases have not run out.
    pub valid: bool,
    /// By partition.
    pub held: [Held; PARTS],
    /// From where to read again.
    pub late: Late,
    /// What the reading task does.
    pub reading: Reading,
    /// By record.
    pub memory: [Place; RECORDS],
    /// What the writing task does.
    pub writing: Option<Batch>,
    /// Whether it is awake.
    pub sleep: Sleep,
    /// A notification has arrived.
    pub notified: bool,
    /// Only with [`Mistake::TakesFlagDownLater`]: on its way.
    pub taking_flag_down: bool,
    /// Only with [`Mistake::BuriesLater`]: whom.
    pub burying: Option<u8>,
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

    /// Which partitions it reads: those it holds, as far as it knows.
    #[must_use]
    pub fn holds(&self) -> [bool; PARTS] {
        self.held.map(|held| held.epoch > 0 && !held.refused)
    }

    /// The highest id it has seen.
    #[must_use]
    pub fn highest(&self) -> u8 {
        self.held.iter().map(|held| held.after).max().unwrap_or(0)
    }

    /// Forgets everything about a partition; `in_part` tells which records are in it.
    pub fn drop_part(&mut self, part: usize, in_part: [bool; RECORDS]) {
        self.held[part] = Held::default();
        self.forget(in_part);
    }

    /// Forgets these records.
    pub fn forget(&mut self, in_part: [bool; RECORDS]) {
        for (place, _) in self.memory.iter_mut().zip(in_part).filter(|(_, of)| *of) {
            *place = Place::Out;
        }
    }
}
