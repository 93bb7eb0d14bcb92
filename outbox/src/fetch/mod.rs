//! From the database into memory: what to read, and the task that reads it.
//!
//! [`watermark`], [`late`] and [`may_block`] decide without I/O; [`round`] carries one fetch out.

pub(crate) mod late;
pub(crate) mod may_block;
pub(crate) mod round;
pub(crate) mod watermark;

pub(crate) use late::Late;
pub(crate) use may_block::MayBlock;
pub(crate) use round::{Arrived, Fetcher, Round};
pub(crate) use watermark::{Plan, Watermarks};
