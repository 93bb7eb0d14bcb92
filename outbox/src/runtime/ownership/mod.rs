//! Ownership of partitions: this process claims them with leases, renews them, hands over those
//! above its fair share, and finds peers that have died.
//!
//! [`ownership`] decides when to claim and whether work may start; [`claim`] runs the
//! statements. [`watcher`] is a task of its own; everything else is pure.

mod claim;
mod decision;
mod failure_detector;
mod hand_over;
mod lease_table;
#[expect(clippy::module_inception, reason = "the part that owns the others")]
mod ownership;
mod poll_schedule;
mod session;
mod watcher;

pub(crate) use claim::{ClaimOutcome, ClaimRequest};
pub(crate) use lease_table::{LeaseChanges, LeaseTable};
pub(crate) use ownership::{Ownership, StartPermit};
pub(crate) use session::WatcherGone;
pub(crate) use watcher::Watcher;
