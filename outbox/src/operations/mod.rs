//! Counting, listing and changing stored records, for people on call; see [`Operations`].

mod bulk;
mod change;
mod counts;
mod export;
mod filter;
pub(crate) mod health;
mod list;
#[expect(
    clippy::module_inception,
    reason = "the type that the room is named after"
)]
mod operations;
mod overview;
mod prune;
mod restore;
mod samples;
mod step;
mod tables;
mod view;

pub use crate::record::{DeliveryStatus, RecordStatus};
pub use bulk::Bulk;
pub use change::Change;
pub use counts::Precision;
pub use filter::{Cursor, Filter, Order, Paging};
pub use health::{DatabaseHealth, DispatcherHealth, Health, HealthCheck};
pub use operations::Operations;
pub use overview::Overview;
pub use prune::Pruning;
pub use restore::RestoreError;
pub use tables::Tables;
pub use view::{
    BlockedLane, Breakdown, Counts, Delivery, ErrorCount, EventCounts, Failure, Inspected,
    Instance, Listed, Page, Status,
};
