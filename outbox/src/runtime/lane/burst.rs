//! [`Burst`] and [`Work`]: what lanes give to workers.

use std::sync::Arc;

use crate::{
    record::{Attempt, Record},
    registry::HandlerIx,
};

/// One invocation to make.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) record: Arc<Record>,
    pub(crate) part: u16,
    pub(crate) handler: HandlerIx,
    pub(crate) attempt: Attempt,
    /// It was read from a delivery row. If not, it may have got a row since, or be about to.
    pub(crate) from_row: bool,
    /// It is retried outside its lane: later records of the lane did not wait for it.
    pub(crate) is_detached: bool,
}

impl Work {
    /// The first attempt at a record without a delivery row.
    pub(super) fn first(record: Arc<Record>, part: u16, handler: HandlerIx) -> Self {
        Self {
            record,
            part,
            handler,
            attempt: Attempt::first(),
            from_row: false,
            is_detached: false,
        }
    }
}

/// The records that a lane may run with one slot. Each starts only after the one before it
/// completed; the worker may stop early, and the rest stays in the lane.
#[derive(Debug, Clone)]
pub(crate) struct Burst {
    pub(crate) first: Work,
    pub(crate) rest: Vec<Work>,
}
