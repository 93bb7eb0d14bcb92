//! Tasks beside everything else: pruning, and sampling for gauges. None of them holds up a record.

#[expect(clippy::module_inception, reason = "the part that owns the others")]
mod housekeeping;
mod periodic;
mod prune;
mod sample;

pub(super) use housekeeping::Housekeeping;
