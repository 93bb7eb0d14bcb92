//! Whether peers still see that this process lives.                                        (pure)
//!
//! Where the database tells when a session ends, peers take over from a process whose session is
//! gone, long before its leases expire. A process therefore starts nothing unless its own session
//! was verified a moment ago: peers wait for longer than a verification counts.

use std::{future::pending, time::Duration};

use tokio::{sync::watch, time::Instant};

use crate::store::SessionKey;

/// A verification of the session counts for this long, from when the poll was sent.
pub(super) const VERIFIED_FOR: Duration = Duration::from_millis(700);
/// Before something is started, the watcher is asked for a new verification if the last one counts
/// for less than this. The watcher polls more often than every 400 ms while it has peers, so it
/// need not be asked then.
const REVERIFY_BEFORE: Duration = Duration::from_millis(300);

/// Whether peers still see that this process lives. The watcher writes it; the event loop and every
/// [`StartPermit`](super::StartPermit) read it. When the watcher is gone, it is `Lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// Peers see no session of this process: only leases count.
    None,
    /// No peer reaps this process before `until`. Leases that were claimed in an earlier session
    /// may be gone.
    Verified { key: SessionKey, until: Instant },
    /// Peers may have seen the session end.
    Lost,
}

impl SessionState {
    /// Whether work may start under leases that were claimed in this session.
    pub(crate) fn is_verified(self, claimed_in: Option<SessionKey>, now: Instant) -> bool {
        match self {
            Self::None => true,
            Self::Verified { key, until } => claimed_in == Some(key) && now < until,
            Self::Lost => false,
        }
    }

    /// Whether the verification ends soon, or has ended and comes back with the next poll.
    pub(crate) fn needs_verifying(self, now: Instant) -> bool {
        matches!(self, Self::Verified { until, .. } if until < now + REVERIFY_BEFORE)
    }

    /// Which session it is. Each has its own key, also if the watcher was started again: leases that
    /// were claimed in one session never count in another.
    pub(crate) fn key(self) -> Option<SessionKey> {
        match self {
            Self::Verified { key, .. } => Some(key),
            Self::None | Self::Lost => None,
        }
    }
}

/// The readers' end. Without a watcher nothing is watched, and only leases count.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionWatch(Option<watch::Receiver<SessionState>>);

/// The watcher has panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatcherGone;

impl SessionWatch {
    pub(crate) fn state(&self) -> SessionState {
        match &self.0 {
            None => SessionState::None,
            Some(state) if state.has_changed().is_err() => SessionState::Lost,
            Some(state) => *state.borrow(),
        }
    }

    /// Whether there is a watcher.
    pub(crate) fn is_watched(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until the state is another one; for ever without a watcher. Dropping it loses nothing.
    pub(crate) async fn changed(&mut self) -> Result<(), WatcherGone> {
        match &mut self.0 {
            Some(state) => state.changed().await.map_err(|_| WatcherGone),
            None => pending().await,
        }
    }

    /// Waits until the session is verified for the first time.
    pub(crate) async fn verified(&mut self) {
        if let Some(state) = &mut self.0 {
            // An error means that the watcher is gone, which the event loop notices.
            let _ = state.wait_for(|state| state.key().is_some()).await;
        }
    }
}

/// The watcher's end. When it is dropped, the state is `Lost`.
#[derive(Debug)]
pub(super) struct SessionReporter(watch::Sender<SessionState>);

impl SessionReporter {
    pub(super) fn new(first: SessionState) -> (Self, SessionWatch) {
        let (sender, state) = watch::channel(first);
        (Self(sender), SessionWatch(Some(state)))
    }

    /// Peers see a new session of this process, in which the database answered what was asked at
    /// `asked_at`.
    pub(super) fn session_opened(&self, key: SessionKey, asked_at: Instant) {
        let until = asked_at + VERIFIED_FOR;
        self.0.send_replace(SessionState::Verified { key, until });
    }

    /// The database answered in this session what was asked at `asked_at`.
    pub(super) fn verified(&self, asked_at: Instant) {
        self.0.send_if_modified(|state| {
            let SessionState::Verified { until, .. } = state else {
                return false;
            };
            let was_verified = Instant::now() < *until;
            *until = asked_at + VERIFIED_FOR;
            // The event loop is woken only if it may start work again.
            !was_verified
        });
    }

    /// Peers are about to see a session of this process, and may reap it from then on. Nothing is
    /// started until it is opened.
    pub(super) fn session_opening(&self) {
        self.0.send_replace(SessionState::Lost);
    }

    /// The session is gone, or may be. Changes nothing if there is none.
    pub(super) fn session_lost(&self) {
        self.0.send_if_modified(|state| {
            let had_session = state.key().is_some();
            if had_session {
                *state = SessionState::Lost;
            }
            had_session
        });
    }

    /// Peers see no session of this process.
    pub(super) fn no_session(&self) {
        self.0.send_replace(SessionState::None);
    }

    pub(super) fn is_dispatcher_gone(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until the event loop and its permits have dropped their ends.
    pub(super) async fn dispatcher_gone(&self) {
        self.0.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_is_verified_for_a_while_and_only_for_what_was_claimed_in_it() {
        let now = Instant::now();
        let (reporter, watch) = SessionReporter::new(SessionState::None);
        let is_verified = |claimed_in, now| watch.state().is_verified(claimed_in, now);
        assert!(is_verified(None, now));
        reporter.session_opened(SessionKey::new(), now);
        let first = watch.state().key();
        assert!(!is_verified(None, now));
        assert!(is_verified(first, now + VERIFIED_FOR / 2));
        assert!(!is_verified(first, now + VERIFIED_FOR));
        reporter.verified(now + VERIFIED_FOR);
        assert!(is_verified(first, now + VERIFIED_FOR));
        assert!(!is_verified(first, now + VERIFIED_FOR * 2));
        reporter.session_lost();
        assert!(!is_verified(first, now + VERIFIED_FOR));
        reporter.session_opened(SessionKey::new(), now + VERIFIED_FOR);
        assert!(!is_verified(first, now + VERIFIED_FOR));
        assert!(is_verified(watch.state().key(), now + VERIFIED_FOR));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_claimed_in_a_session_of_a_watcher_that_died_does_not_count_in_the_next() {
        let now = Instant::now();
        let (reporter, mut watch) = SessionReporter::new(SessionState::None);
        reporter.session_opened(SessionKey::new(), now);
        let claimed_in = watch.state().key();
        assert_eq!(watch.changed().await, Ok(()));
        drop(reporter);
        assert_eq!(watch.changed().await, Err(WatcherGone));
        assert!(!watch.state().is_verified(claimed_in, now));
        let (reporter, watch) = SessionReporter::new(SessionState::Lost);
        reporter.session_opened(SessionKey::new(), now);
        assert!(!watch.state().is_verified(claimed_in, now));
    }
}
