//! The right to begin an invocation, asked for again at the last moment: a process may be frozen,
//! or wait for a connection, between the decision to start something and its start.

use tokio::{sync::watch, time::Instant};

use crate::runtime::ownership::session::SessionState;

/// Made when work is started; dropped with it. Reads what the watcher writes.
#[derive(Debug, Clone)]
pub(crate) struct StartPermit {
    /// Until then nobody else can own the partition by its lease.
    pub(in crate::runtime) until: Instant,
    pub(in crate::runtime) session: Option<watch::Receiver<SessionState>>,
    /// The session under which the leases were confirmed.
    pub(in crate::runtime) confirmed: u64,
}

impl StartPermit {
    pub(crate) fn holds(&self) -> bool {
        let now = Instant::now();
        let session = self.session.as_ref();
        let session = session.map_or(SessionState::None, |session| *session.borrow());
        now < self.until && session.is_trusted(self.confirmed, now)
    }
}
