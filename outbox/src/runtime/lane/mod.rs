//! Lanes: which record may run now, and what is to be written about those that ran.
//!
//! A lane is all records of one key for one handler, in order. One of them runs at a time; lanes are
//! independent of each other. [`Lanes`] is a state machine without I/O: rows and outcomes go in,
//! bursts to start, a batch to write and lanes to load come out.
//!
//! A record is *whole* at first: pending in the database, in memory for all of its handlers. If all of
//! them complete it, one row is completed. Once one of them fails or has to wait, the record is
//! *split*: each handler that has not completed it gets a delivery row.
//!
//! **Three rules**
//! 1. Memory wins over the answer of a fetch, which saw the database a moment ago.
//! 2. What a batch is about stays in memory until the batch is written *and* no fetch is under way
//!    that started before.
//! 3. The backlog of a lane is loaded only when the lane has no unwritten changes.
//!
//! **Four doors**: [`admit`] from a fetch, [`finish`] from a worker, [`written`] from the writer,
//! [`partitions`] from ownership with [`park`] from operators and from a full memory. Behind them,
//! [`advance`] does the one thing that a lane can do next. The states of a lane, with their legal
//! transitions, are in [`state`].

mod admit;
mod advance;
mod attempt_end;
mod burst;
mod finish;
mod handlers;
mod key;
#[expect(clippy::module_inception, reason = "one lane among the lanes")]
mod lane;
mod lanes;
mod memory;
mod outgoing;
mod park;
mod partitions;
mod rows;
mod state;
mod written;

pub(crate) use self::{
    admit::Target,
    attempt_end::AttemptEnd,
    burst::{Burst, Work},
    handlers::{Availability, HandlerSettings},
    lanes::{LaneSettings, Lanes},
    outgoing::OutgoingBatch,
    rows::completed_row,
};
use self::{
    handlers::HandlerState,
    key::Keys,
    lane::{KEEP_QUEUED, Lane, NextStep, TakeFromQueue},
    memory::{Generation, Memory, Origin},
    outgoing::{FetchPhase, ForgetList, Outgoing},
    state::{Activity, Backlog, State},
};
#[cfg(test)]
pub(crate) use state::TABLES;
