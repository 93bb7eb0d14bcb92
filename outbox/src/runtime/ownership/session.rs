//! Whether others still see that this process lives.
//!
//! Where the database tells when a session ends, peers take over from a process whose session is
//! gone, long before its leases run out. So this process starts nothing while it is not sure of
//! its own session: peers wait for longer than it trusts.

use std::time::Duration;

use tokio::{sync::watch, time::Instant};

/// For so long after its last sign a session counts as alive here.
pub(super) const TRUST: Duration = Duration::from_millis(700);
/// Who wants to start something asks for another sign when trust ends within this time: shorter
/// than what is left of [`TRUST`] when the next one comes by itself.
const SOON: Duration = Duration::from_millis(300);

/// Written by the watcher; read by the dispatcher before it starts something. When the watcher is
/// gone, trust ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// Others see no session: only leases count.
    #[default]
    None,
    /// Nobody takes over from the session with this number before then. LeaseTable that were confirmed
    /// under an earlier one may have been taken since.
    Alive { number: u64, until: Instant },
    /// Others may see that it is gone.
    Lost,
}

impl SessionState {
    /// Whether work may be started under leases that were confirmed under this session.
    pub(crate) fn is_trusted(self, confirmed: u64, now: Instant) -> bool {
        match self {
            Self::None => true,
            Self::Alive { number, until } => number == confirmed && now < until,
            Self::Lost => false,
        }
    }

    /// Whether trust ends soon, or has ended and comes back with the next sign.
    pub(crate) fn ends_soon(self, now: Instant) -> bool {
        match self {
            Self::Alive { until, .. } => until < now + SOON,
            Self::None | Self::Lost => false,
        }
    }

    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Alive { number, .. } => number,
            Self::None | Self::Lost => 0,
        }
    }
}

/// The watcher's end.
#[derive(Debug)]
pub(super) struct SessionReporter {
    session: watch::Sender<SessionState>,
    /// How many sessions there were.
    count: u64,
}

impl SessionReporter {
    /// `again`: others may still see, and judge by, the session of another one that has panicked.
    pub(super) fn new(again: bool) -> (Self, watch::Receiver<SessionState>) {
        let (session, reader) = watch::channel(match again {
            true => SessionState::Lost,
            false => SessionState::None,
        });
        (Self { session, count: 0 }, reader)
    }

    /// A new session begins. Before others can see it.
    pub(super) fn begins(&mut self, now: Instant) {
        self.count += 1;
        let (number, until) = (self.count, now + TRUST);
        self.session
            .send_replace(SessionState::Alive { number, until });
    }

    /// The database answered in this session what was asked then.
    pub(super) fn seen(&self, at: Instant) {
        self.session.send_if_modified(|session| {
            let SessionState::Alive { until, .. } = session else {
                return false;
            };
            let was_trusted = Instant::now() < *until;
            *until = at + TRUST;
            // The dispatcher need not be woken for every sign.
            !was_trusted
        });
    }

    /// When nobody wants to know any more: the dispatcher has ended.
    pub(super) async fn unwanted(&self) {
        self.session.closed().await;
    }

    pub(super) fn is_unwanted(&self) -> bool {
        self.session.is_closed()
    }

    /// The session is gone, or may be.
    pub(super) fn lost(&self) {
        let lost = |session: &mut SessionState| {
            let had = matches!(session, SessionState::Alive { .. });
            if had {
                *session = SessionState::Lost;
            }
            had
        };
        self.session.send_if_modified(lost);
    }

    /// Others see no session any more.
    pub(super) fn none(&self) {
        self.session.send_replace(SessionState::None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_is_trusted_for_a_while_and_only_for_what_it_confirmed() {
        let now = Instant::now();
        let (mut pulse, reader) = SessionReporter::new(false);
        assert!(reader.borrow().is_trusted(0, now));
        pulse.begins(now);
        assert!(!reader.borrow().is_trusted(0, now));
        assert!(reader.borrow().is_trusted(1, now + TRUST / 2));
        assert!(!reader.borrow().is_trusted(1, now + TRUST));
        pulse.seen(now + TRUST);
        assert!(reader.borrow().is_trusted(1, now + TRUST));
        assert!(!reader.borrow().is_trusted(1, now + TRUST * 2));
        pulse.lost();
        assert!(!reader.borrow().is_trusted(1, now + TRUST));
        pulse.begins(now + TRUST);
        assert!(!reader.borrow().is_trusted(1, now + TRUST));
        assert!(reader.borrow().is_trusted(2, now + TRUST));
    }
}
