//! Reads records and deliveries from the tables into memory.
//!
//! [`plan`] has the data of one fetch. [`watermarks`], [`late_writers`] (with [`record_ages`]) and
//! [`blocking_keys`] decide without I/O; [`fetcher`] runs one plan.

pub(crate) mod blocking_keys;
pub(crate) mod fetcher;
pub(crate) mod late_writers;
pub(crate) mod plan;
pub(super) mod reader;
mod record_ages;
pub(crate) mod watermarks;

pub(crate) use blocking_keys::BlockingKeys;
pub(crate) use fetcher::Fetcher;
pub(crate) use late_writers::LateWriters;
pub(crate) use plan::{
    DuePlan, FetchPlan, FetchRequest, FetchSummary, Fetched, FindRunnable, PendingPlan, PollReason,
};
pub(crate) use watermarks::{PagePlan, Watermarks};
