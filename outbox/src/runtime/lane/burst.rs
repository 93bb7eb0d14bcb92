//! [`Burst`] and [`Work`]: the invocations that lanes give to workers.

use std::sync::Arc;

use crate::{
    record::{Attempt, Partition, Record},
    registry::HandlerIx,
};

/// One invocation to make.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) record: Arc<Record>,
    pub(crate) partition: Partition,
    pub(crate) handler: HandlerIx,
    pub(crate) attempt: Attempt,
    /// It was read from a delivery row. Otherwise it may have got a row since, or may be about to.
    pub(crate) from_row: bool,
    /// It is retried outside its lane: later records of the lane do not wait for it.
    pub(crate) is_detached: bool,
}

impl Work {
    /// The first attempt at a record without a delivery row.
    pub(super) fn first(record: Arc<Record>, partition: Partition, handler: HandlerIx) -> Self {
        Self {
            record,
            partition,
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
