//! The dispatcher: owns partitions, fetches records, orders them in lanes, runs handlers and
//! settles what became of them.

pub(crate) mod backoff;
mod dispatcher;
pub(crate) mod engine;
mod event_loop;
pub(crate) mod fetch;
mod housekeeping;
pub(crate) mod lane;
pub(crate) mod meters;
pub(crate) mod ownership;
mod read;
pub(crate) mod settle;
mod shutdown;
pub(crate) mod signals;
#[cfg(test)]
mod tests;
mod timers;
pub(crate) mod work;

pub use dispatcher::Dispatcher;
