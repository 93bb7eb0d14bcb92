//! How much of everything there is, and what may go wrong.

/// At most so many processes.
pub const WORKERS: usize = 2;
/// At most so many partitions.
pub const PARTS: usize = 2;
/// At most so many records; a record's id is its place, from one.
pub const RECORDS: usize = 3;
/// At most so many transactions that publish.
pub const TRANSACTIONS: usize = 3;

/// What there is and what may happen to it.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Processes; of these, those that run from the beginning.
    pub workers: usize,
    /// The first so many run from the beginning, the others may join.
    pub running: usize,
    /// Partitions.
    pub partitions: usize,
    /// The partition of each key.
    pub key_parts: [u8; 3],
    /// The keys of the records of each transaction, in the order of writing.
    pub transactions: &'static [&'static [u8]],
    /// The first so many transactions are over when everything begins.
    pub committed: usize,
    /// Transactions may be rolled back.
    pub rollbacks: bool,
    /// Handling and completing a record is one step: for scenarios that are about reading.
    pub instant: bool,
    /// A fetch reads at most so many records of a partition.
    pub page: usize,
    /// Processes go to sleep when there is nothing to do, and only a notification wakes them.
    pub sleep: bool,
    /// One that was woken and found nothing goes back to sleep without the whole procedure: its
    /// flag was never taken down.
    pub nap: bool,
    /// A process whose session is gone is buried after a time of grace only, and counts that time
    /// itself: whoever has no session starts nothing when it is over.
    pub grace: bool,
    /// The fence is looked at when the statement begins, and somebody else may take the partition
    /// before it ends: leases are not locked.
    pub unlocked: bool,
    /// A claim sees the rows of processes as they were when its statement began, and the leases as
    /// they are when it locks them: READ COMMITTED.
    pub snapshot: bool,
    /// Whoever buries a process frees its leases in the same transaction, and claims look at
    /// leases only. Otherwise a lease is free whose owner has no row.
    pub frees: bool,
    /// Claims go on although they change nothing, as they do; left out elsewhere.
    pub renews: bool,
    /// Processes that may leave in good order.
    pub leaves: u8,
    /// What may go wrong, and how often.
    pub faults: Faults,
}

/// How often what may go wrong; counted down in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Faults {
    /// A process is killed, or its host is cut off.
    pub crashes: u8,
    /// A process stands still until its leases have run out, or cannot renew them.
    pub expiries: u8,
    /// The connection breaks that shows that a process lives; the process lives on.
    pub sessions: u8,
    /// The database crashes and forgets the last completion, if any.
    pub databases: u8,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        crashes: 0,
        expiries: 0,
        sessions: 0,
        databases: 0,
    };
}

impl Scenario {
    /// One process, one partition, nothing goes wrong: a start for others.
    pub const CALM: Self = Self {
        workers: 1,
        running: 1,
        partitions: 1,
        key_parts: [0, 0, 0],
        transactions: &[&[0], &[0]],
        committed: 0,
        rollbacks: false,
        instant: false,
        page: RECORDS,
        sleep: false,
        nap: false,
        grace: false,
        unlocked: false,
        snapshot: false,
        frees: false,
        renews: false,
        leaves: 0,
        faults: Faults::NONE,
    };

    /// The partition of a key.
    #[must_use]
    pub fn part(&self, key: u8) -> usize {
        usize::from(self.key_parts[usize::from(key)])
    }
}
