//! The counters, histograms and gauges of the dispatcher.

mod gauges;
mod handlers;
#[expect(clippy::module_inception, reason = "the main type of this folder")]
mod meters;
mod unhandled;

pub(crate) use gauges::Gauges;
pub(crate) use handlers::HandlerDurations;
pub(crate) use meters::{Meters, database_error};
pub(crate) use unhandled::UnhandledEvents;
