//! Periodic tasks that no record waits for: pruning, and sampling for gauges.

#[expect(clippy::module_inception, reason = "the part that owns the others")]
mod housekeeping;
mod periodic;
mod prune;
mod sample;

pub(super) use housekeeping::Housekeeping;
