//! A model of what processes and database do with each other, small enough to visit every state:
//! leases and epochs, watermark and late committers, completions, hand-over, listening.
//!
//! No line of the library is run here: the model says in which order what has to happen, and the
//! library's own tests say that it does. When the protocol changes, the model is changed first.
//! The numbered rules are in `docs/protocol.md`; each mistake names the rule that it breaks.
//!
//! - [`scenario`]: how much of everything there is, and what may go wrong; `scenarios`: those that
//!   are visited
//! - [`database`], [`worker`], [`late_writers`], [`world`]: a state
//! - [`step`], [`protocol`]: what can happen in it; a file for each concern
//! - [`property`]: what must hold
//! - [`mistake`]: what would break it
//! - [`explore`]: visits every state

pub mod database;
pub mod explore;
pub mod late_writers;
pub mod mistake;
pub mod property;
pub mod protocol;
pub mod scenario;
mod scenarios;
pub mod step;
pub mod worker;
pub mod world;
