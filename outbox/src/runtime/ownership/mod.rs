//! Which partitions this process owns.

pub(crate) mod claim;
pub(crate) mod decision;
pub(crate) mod failure_detector;
pub(crate) mod hand_over;
pub(crate) mod lease_table;
pub(crate) mod permit;
pub(crate) mod poll_schedule;
pub(crate) mod session;
pub(crate) mod watcher;
