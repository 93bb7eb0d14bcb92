//! Which partitions this process owns: it claims them with leases, renews them, hands over what
//! exceeds its fair share, and finds peers that have died.
//!
//! [`ownership`] decides when to claim and whether work may start; [`claim`] is the statement.
//! [`watcher`] is a task beside the event loop; everything else is pure.

pub(crate) mod claim;
pub(crate) mod decision;
mod failure_detector;
mod hand_over;
pub(crate) mod lease_table;
#[expect(clippy::module_inception, reason = "the part that owns the others")]
mod ownership;
pub(crate) mod permit;
mod poll_schedule;
pub(crate) mod session;
pub(super) mod watcher;

pub(super) use ownership::{ClaimStamp, NeedsSweep, Ownership};
