//! What the dispatcher counts and shows.

mod gauges;
mod handlers;
#[expect(clippy::module_inception, reason = "the meters among what is metered")]
mod meters;
mod unhandled;

pub(crate) use gauges::Gauges;
pub(crate) use handlers::HandlerDurations;
pub(crate) use meters::{Meters, database_error};
pub(crate) use unhandled::Unhandled;
