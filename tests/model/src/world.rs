//! A state: the database, the processes, and what has happened.

use crate::{
    database::Database,
    scenario::{Faults, PARTITIONS, RECORDS, WORKERS},
    worker::Worker,
};

/// Everything there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    /// The database.
    pub db: Database,
    /// The processes.
    pub workers: [Worker; WORKERS],
    /// What may still go wrong.
    pub faults: Faults,
    /// How many may still leave.
    pub leaves: u8,
    /// What the properties are about.
    pub history: History,
}

/// What has happened, and no part of the protocol can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct History {
    /// How often each partition was taken. What the epoch is to be; counted apart from it, so that
    /// a mistake with epochs does not hide itself.
    pub tenures: [u8; PARTITIONS],
    /// Whether each partition was taken from an owner that something had happened to.
    pub unclean: [bool; PARTITIONS],
    /// Processes to which something has happened.
    pub unlucky: [bool; WORKERS],
    /// Records whose handler was started, and the tenure of the last start.
    pub started: [Option<u8>; RECORDS],
    /// Records whose handler has returned.
    pub handled: [bool; RECORDS],
}
