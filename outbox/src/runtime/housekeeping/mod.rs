//! Tasks beside everything else: pruning, and sampling for gauges.

pub(super) mod prune;
pub(super) mod sample;
