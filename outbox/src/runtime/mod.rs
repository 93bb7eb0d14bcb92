//! The dispatcher: owns partitions, fetches records, orders them in lanes, runs handlers and
//! settles the results.
//!
//! A record passes [`signals`], [`event_loop`], [`timers`], [`engine`], [`fetch`], [`lane`],
//! [`work`] and [`settle`], in this order. [`ownership`] decides which partitions this process
//! owns, [`housekeeping`] prunes and samples, and `shutdown.rs` stops the dispatcher.

pub(crate) mod backoff;
mod dispatcher;
pub(crate) mod engine;
mod event_loop;
pub(crate) mod fetch;
mod housekeeping;
pub(crate) mod lane;
pub(crate) mod meters;
pub(crate) mod ownership;
pub(crate) mod settle;
pub(crate) mod signals;
mod single_task;
#[cfg(test)]
mod tests;
mod timers;
pub(crate) mod work;

pub use dispatcher::Dispatcher;
