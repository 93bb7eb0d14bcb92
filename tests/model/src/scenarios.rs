//! The sizes at which everything is visited: small enough for that, large enough for what goes wrong
//! in designs like this one. Each is about one or two concerns, because their product is too large.

use crate::scenario::{Faults, Scenario};

impl Scenario {
    /// Three transactions of two keys in one partition, in any order: late committers.
    pub const READING: Self = Self {
        transactions: &[&[0], &[1], &[0]],
        rollbacks: true,
        instant: true,
        ..Self::CALM
    };
    /// The same, one record at a time.
    pub const READING_IN_PAGES: Self = Self {
        page: 1,
        rollbacks: false,
        ..Self::READING
    };
    /// Two partitions: ids are drawn for all of them together.
    pub const READING_PARTITIONS: Self = Self {
        partitions: 2,
        key_partitions: [0, 1, 0],
        transactions: &[&[0, 2], &[1]],
        rollbacks: true,
        instant: true,
        ..Self::CALM
    };
    /// Handlers take their time while others commit.
    pub const HANDLING: Self = Self {
        transactions: &[&[0], &[1]],
        rollbacks: true,
        ..Self::CALM
    };
    /// Two processes whose leases run out, again and again.
    pub const EXPIRY: Self = Self {
        workers: 2,
        running: 2,
        transactions: &[&[0]],
        committed: 1,
        faults: Faults {
            expiries: 3,
            ..Faults::NONE
        },
        ..Self::CALM
    };
    /// Two processes, two records of one key; one crashes, or its host is cut off.
    pub const CRASH: Self = Self {
        workers: 2,
        running: 2,
        transactions: &[&[0, 0]],
        committed: 1,
        faults: Faults {
            crashes: 1,
            expiries: 1,
            ..Faults::NONE
        },
        ..Self::CALM
    };
    /// A process lives and its session does not.
    pub const SESSION: Self = Self {
        workers: 2,
        running: 2,
        transactions: &[&[0]],
        committed: 1,
        faults: Faults {
            expiries: 1,
            sessions: 1,
            ..Faults::NONE
        },
        ..Self::CALM
    };
    /// The same with two records of one key.
    pub const SESSION_ORDER: Self = Self {
        transactions: &[&[0, 0]],
        faults: Faults {
            sessions: 1,
            ..Faults::NONE
        },
        ..Self::SESSION
    };
    /// The same with a time of grace.
    pub const SESSION_GRACE: Self = Self {
        grace: true,
        ..Self::SESSION
    };
    /// A claim sees rows of processes as they were.
    pub const SESSION_SNAPSHOT: Self = Self {
        snapshot: true,
        faults: Faults {
            sessions: 1,
            ..Faults::NONE
        },
        ..Self::SESSION
    };
    /// The same, and reaping frees leases.
    pub const SESSION_SNAPSHOT_FREED: Self = Self {
        frees: true,
        ..Self::SESSION_SNAPSHOT
    };
    /// All of that together: what is to be built.
    pub const SESSION_ALL: Self = Self {
        grace: true,
        unlocked: true,
        ..Self::SESSION_SNAPSHOT_FREED
    };
    /// Everything that takes a partition away, and a fence that is not locked.
    pub const UNLOCKED: Self = Self {
        unlocked: true,
        faults: Faults {
            expiries: 1,
            sessions: 1,
            ..Faults::NONE
        },
        ..Self::SESSION
    };
    /// A second process joins, partitions are shared out, one leaves; nothing goes wrong.
    pub const HAND_OVER: Self = Self {
        workers: 2,
        running: 1,
        partitions: 2,
        key_partitions: [0, 1, 0],
        transactions: &[&[0, 1]],
        leaves: 1,
        ..Self::CALM
    };
    /// The same, with claims under way at any time.
    pub const HAND_OVER_RENEWING: Self = Self {
        committed: 1,
        renews: true,
        ..Self::HAND_OVER
    };
    /// The same while a transaction publishes.
    pub const HAND_OVER_LATE: Self = Self {
        transactions: &[&[0], &[2]],
        committed: 1,
        instant: true,
        leaves: 0,
        ..Self::HAND_OVER
    };
    /// Partitions are shared out while leases run out.
    pub const HAND_OVER_EXPIRY: Self = Self {
        committed: 1,
        instant: true,
        faults: Faults {
            expiries: 1,
            ..Faults::NONE
        },
        ..Self::HAND_OVER
    };
    /// One leaves while a session is lost.
    pub const LEAVING: Self = Self {
        workers: 2,
        running: 1,
        transactions: &[&[0]],
        committed: 1,
        leaves: 1,
        faults: Faults {
            sessions: 1,
            ..Faults::NONE
        },
        ..Self::CALM
    };
    /// Of two with two partitions one is cut off for ever, and its session hangs.
    pub const CUT_OFF: Self = Self {
        running: 2,
        committed: 1,
        instant: true,
        leaves: 0,
        faults: Faults {
            crashes: 1,
            expiries: 1,
            ..Faults::NONE
        },
        ..Self::HAND_OVER
    };
    /// One process that listens, two transactions that publish.
    pub const LISTENING: Self = Self {
        transactions: &[&[0], &[1]],
        rollbacks: true,
        instant: true,
        listens: true,
        ..Self::CALM
    };
    /// The same, and a process that found nothing listens again at once.
    pub const FLAG_KEPT: Self = Self {
        keeps_flag: true,
        ..Self::LISTENING
    };
    /// Two processes that listen. One crashes, a connection breaks.
    pub const LISTENING_FAULTS: Self = Self {
        workers: 2,
        running: 2,
        transactions: &[&[0]],
        instant: true,
        listens: true,
        faults: Faults {
            crashes: 1,
            sessions: 1,
            ..Faults::NONE
        },
        ..Self::CALM
    };
    /// Partitions are shared out among processes that listen.
    pub const LISTENING_HAND_OVER: Self = Self {
        transactions: &[&[0]],
        instant: true,
        listens: true,
        ..Self::HAND_OVER
    };
    /// The database crashes and forgets one of two records of a key.
    pub const DATABASE_ORDER: Self = Self {
        transactions: &[&[0], &[0]],
        committed: 1,
        faults: Faults {
            databases: 1,
            ..Faults::NONE
        },
        ..Self::CALM
    };
    /// The database crashes and forgets.
    pub const DATABASE: Self = Self {
        workers: 2,
        running: 2,
        transactions: &[&[0]],
        committed: 1,
        faults: Faults {
            expiries: 1,
            databases: 1,
            ..Faults::NONE
        },
        ..Self::CALM
    };
    /// The database crashes while processes listen.
    pub const DATABASE_LISTENING: Self = Self {
        committed: 0,
        instant: true,
        listens: true,
        faults: Faults {
            databases: 1,
            ..Faults::NONE
        },
        ..Self::DATABASE
    };
}
