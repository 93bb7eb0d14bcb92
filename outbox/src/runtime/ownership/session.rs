//! [`SessionState`]: whether peers still see that this process lives.                      (pure)
//!
//! If the database has session locks, peers take over from a process whose session is gone, long
//! before its leases expire. A process therefore starts work only while its own session is
//! verified. Peers wait for longer than a verification counts.

use std::{future::pending, time::Duration};

use tokio::{sync::watch, time::Instant};

use crate::store::SessionKey;

/// A verification of the session counts for 700 ms after the poll was sent.
pub(super) const VERIFIED_FOR: Duration = Duration::from_millis(700);
/// Before it starts work, the event loop asks the watcher for a new verification if the last one
/// counts for less than 300 ms. With peers, the watcher polls more often than every 400 ms, and
/// need not be asked.
const REVERIFY_BEFORE: Duration = Duration::from_millis(300);

/// Whether peers still see that this process lives. The watcher writes it; the event loop and every
/// [`StartPermit`](super::StartPermit) read it. If the watcher is gone, it is `Lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// Peers see no session of this process, so only leases count.
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

    /// Whether the verification ends soon, or has ended and may be renewed by the next poll.
    pub(crate) fn needs_verifying(self, now: Instant) -> bool {
        matches!(self, Self::Verified { until, .. } if until < now + REVERIFY_BEFORE)
    }

    /// The key of the session. Each session has its own key, also after a restart of the watcher:
    /// leases that were claimed in one session never count in another.
    pub(crate) fn key(self) -> Option<SessionKey> {
        match self {
            Self::Verified { key, .. } => Some(key),
            Self::None | Self::Lost => None,
        }
    }
}

/// The readers' end of the state. Without a watcher only leases count.
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

    /// Waits until the state changes. Never returns without a watcher. Dropping it loses nothing.
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

/// The watcher's end of the state. When it is dropped, the state is `Lost`.
#[derive(Debug)]
pub(super) struct SessionReporter(watch::Sender<SessionState>);

impl SessionReporter {
    pub(super) fn new(first: SessionState) -> (Self, SessionWatch) {
        let (sender, state) = watch::channel(first);
        (Self(sender), SessionWatch(Some(state)))
    }

    /// Peers see a new session of this process. In it, the database answered a statement that was
    /// sent at `sent_at`.
    pub(super) fn session_opened(&self, key: SessionKey, sent_at: Instant) {
        let until = sent_at + VERIFIED_FOR;
        self.0.send_replace(SessionState::Verified { key, until });
    }

    /// The database answered in this session a statement that was sent at `sent_at`.
    pub(super) fn verified(&self, sent_at: Instant) {
        self.0.send_if_modified(|state| {
            let SessionState::Verified { until, .. } = state else {
                return false;
            };
            let was_verified = Instant::now() < *until;
            *until = sent_at + VERIFIED_FOR;
            // The event loop is woken only if it may start work again.
            !was_verified
        });
    }

    /// Peers are about to see a session of this process, and may reap the process from then on. No
    /// work starts until the session is opened.
    pub(super) fn session_opening(&self) {
        self.0.send_replace(SessionState::Lost);
    }

    /// The session is gone, or may be. Changes nothing if there was none.
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
    async fn a_verification_counts_for_700_ms_and_for_leases_of_its_session_only() {
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
    async fn leases_of_a_panicked_watchers_session_do_not_count_in_the_next_session() {
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
