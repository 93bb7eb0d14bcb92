//! What probes ask: is this process alive, and should it be given work; see
//! [`Outbox::health`](crate::outbox::Outbox::health).

mod check;
mod liveness;
mod report;

pub use check::HealthCheck;
pub(crate) use liveness::Liveness;
pub use report::{DatabaseHealth, DispatcherHealth, Health};
