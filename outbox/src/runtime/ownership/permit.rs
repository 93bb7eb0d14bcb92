//! The right to start, checked again at the last moment.                                   (pure)

use tokio::time::Instant;

use super::session::{SessionNumber, SessionWatch};

/// The right to start an invocation. The event loop gives it with the work; the worker checks it
/// again just before the handler runs, because a process may freeze, or wait for a connection, in
/// between. Dropped with the burst that it was given for.
#[derive(Debug, Clone)]
pub(crate) struct StartPermit {
    /// No other process can own the partition by its lease before then.
    leases_valid_until: Instant,
    session: SessionWatch,
    /// The session in which the leases were claimed.
    claimed_in: Option<SessionNumber>,
}

impl StartPermit {
    /// `None` if it would not be valid now.
    pub(super) fn new(
        leases_valid_until: Instant,
        session: &SessionWatch,
        claimed_in: Option<SessionNumber>,
        now: Instant,
    ) -> Option<Self> {
        let is_valid = now < leases_valid_until && session.state().is_verified(claimed_in, now);
        is_valid.then(|| Self {
            leases_valid_until,
            session: session.clone(),
            claimed_in,
        })
    }

    pub(crate) fn is_valid(&self) -> bool {
        let now = Instant::now();
        now < self.leases_valid_until && self.session.state().is_verified(self.claimed_in, now)
    }
}
