//! Health probes: whether this process is alive, and whether it is ready; see
//! [`Outbox::health`](crate::outbox::Outbox::health).

mod check;
mod liveness;
mod report;

pub use check::HealthCheck;
pub(crate) use liveness::Liveness;
pub use report::{DatabaseHealth, DispatcherHealth, Health};
