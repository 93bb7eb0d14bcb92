//! How much of everything there is, and what may go wrong.

/// The most processes.
pub const WORKERS: usize = 2;
/// The most partitions.
pub const PARTITIONS: usize = 2;
/// The most records. A record's id is its place, from one.
pub const RECORDS: usize = 3;
/// The most transactions that publish.
pub const TRANSACTIONS: usize = 3;

/// What there is and what may happen to it.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// How many processes there are.
    pub workers: usize,
    /// How many of them run from the beginning. The others may join.
    pub running: usize,
    /// Partitions.
    pub partitions: usize,
    /// The partition of each key.
    pub key_partitions: [u8; 3],
    /// The keys of the records of each transaction, in the order of writing.
    pub transactions: &'static [&'static [u8]],
    /// How many transactions have committed at the beginning.
    pub committed: usize,
    /// Transactions may be rolled back.
    pub rollbacks: bool,
    /// Handling and completing a record is one step: for scenarios that are about reading.
    pub instant: bool,
    /// How many records of a partition a fetch reads at most.
    pub page: usize,
    /// Processes listen when there is nothing to do, and read again only after a notification.
    pub listens: bool,
    /// A process that was notified and found nothing listens again at once: its flag was never
    /// taken down.
    pub keeps_flag: bool,
    /// A process whose session is gone is reaped only after a time of grace. It counts that time
    /// itself, and starts nothing after it.
    pub grace: bool,
    /// The fence is checked when the statement begins, and leases are not locked: a peer may take
    /// the partition before the statement ends.
    pub unlocked: bool,
    /// A claim sees the rows of processes as they were when its statement began, and the leases as
    /// they are when it locks them: READ COMMITTED.
    pub snapshot: bool,
    /// The transaction that reaps a process frees its leases, and claims look at leases only. Otherwise a lease is free whose owner has no row.
    pub frees: bool,
    /// Processes also claim when that changes nothing, as the library does. Left out elsewhere.
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
        key_partitions: [0, 0, 0],
        transactions: &[&[0], &[0]],
        committed: 0,
        rollbacks: false,
        instant: false,
        page: RECORDS,
        listens: false,
        keeps_flag: false,
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
    pub fn partition(&self, key: u8) -> usize {
        usize::from(self.key_partitions[usize::from(key)])
    }
}
