//! From the database into memory: what to read, and the task that reads it.
//!
//! [`watermarks`], [`late_writers`] and [`blocking_keys`] decide without I/O; [`fetcher`] carries one fetch out.

pub(crate) mod blocking_keys;
pub(crate) mod fetcher;
pub(crate) mod late_writers;
pub(crate) mod plan;
pub(super) mod reader;
pub(crate) mod watermarks;

pub(crate) use blocking_keys::BlockingKeys;
pub(crate) use fetcher::{FetchPlan, Fetched, Fetcher};
pub(crate) use late_writers::LateWriters;
pub(crate) use plan::{FetchRequest, FetchSummary, PollReason};
pub(crate) use watermarks::{PagePlan, Watermarks};
