//! Lanes: decide which record may run now, and collect the changes that are to be written.
//!
//! A lane is all records of one key for one handler, in order. One of them runs at a time; lanes
//! are independent of each other. [`Lanes`] is a state machine without I/O. It takes rows and
//! outcomes, and returns bursts to start, a batch to write and lanes to load.
//!
//! A record is *whole* at first: pending in the database, in memory for all of its handlers. If all
//! of them complete it, one row is completed. Once one of them fails or has to wait, the record is
//! *split*: each handler that has not completed it gets a delivery row.
//!
//! **Three rules**
//! 1. Memory wins over the rows of a fetch, which may be older.
//! 2. The records of a batch stay in memory until the batch is written *and* no fetch is under way
//!    that started before.
//! 3. The backlog of a lane is loaded only when the lane has no unwritten changes.
//!
//! **Four inputs**: `admit` for fetches, `finish` for workers, `written` for the writer, and
//! `partitions` for ownership, with `park` for operators and for a full memory. After each of
//! them, `advance` takes the one next step of a lane. The states of a lane, with their legal
//! transitions, are in [`state`].

mod attempt_end;
mod burst;
mod handlers;
mod key;
#[expect(clippy::module_inception, reason = "one lane among the lanes")]
mod lane;
mod lanes;
mod memory;
mod outgoing;
mod rows;
mod state;

pub(crate) use self::{
    attempt_end::AttemptEnd,
    burst::{Burst, Work},
    handlers::{Availability, HandlerSettings},
    lanes::{LaneSettings, Lanes, Target},
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
