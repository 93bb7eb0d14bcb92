//! [`WakeSignals`]: how publish, operations and the watcher call the event loop.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU8, Ordering},
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

/// Raised by publish, operations and the watcher; taken by the event loop. A raised signal stays
/// raised until it is taken, so none is lost. It is a hint: the poll finds everything without it.
#[derive(Debug, Default)]
pub(crate) struct WakeSignals {
    notify: Notify,
    /// One bit per [`Signal`].
    raised: AtomicU8,
    /// The event loop asks the watcher to verify the session.
    verify: Notify,
    /// The partitions of this process. The event loop writes it after each claim.
    owned: Mutex<HashSet<u16>>,
}

/// Why the event loop is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// There is something to do now.
    Requested,
    /// This process published in a transaction that may commit at any moment.
    Published,
    /// The same, of a record that is due at a later time.
    PublishedForLater,
    /// Records of any process were committed.
    PeerPublished,
    /// Partitions changed hands, or an instance has come or gone.
    OwnershipChanged,
    /// A handler was paused or resumed.
    PauseChanged,
}

/// The signals that were raised since the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signals(u8);

impl Signal {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Signals {
    pub(crate) const fn has(self, signal: Signal) -> bool {
        self.0 & signal.bit() != 0
    }
}

impl WakeSignals {
    pub(crate) fn raise(&self, signal: Signal) {
        self.raised.fetch_or(signal.bit(), Ordering::AcqRel);
        self.notify.notify_one();
    }

    /// Raises [`Signal::PeerPublished`] if one of these partitions is owned here, or if none is
    /// named.
    pub(crate) fn peer_published_in(&self, partitions: &[u16]) {
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let concerns = partitions.is_empty() || partitions.iter().any(|part| owned.contains(part));
        drop(owned);
        if concerns {
            self.raise(Signal::PeerPublished);
        }
    }

    pub(crate) fn set_owned(&self, partitions: impl IntoIterator<Item = u16>) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        *owned = partitions.into_iter().collect();
    }

    /// Asks the watcher to verify the session now.
    pub(crate) fn request_verification(&self) {
        self.verify.notify_one();
    }

    /// Waits for that. Dropping it loses nothing.
    pub(crate) async fn verification_requested(&self) {
        self.verify.notified().await;
    }

    /// Waits for a signal and takes all that are raised. Dropping it loses nothing.
    pub(crate) async fn raised(&self) -> Signals {
        self.notify.notified().await;
        Signals(self.raised.swap(0, Ordering::AcqRel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_stays_raised_until_it_is_taken() {
        let signals = WakeSignals::default();
        signals.raise(Signal::Published);
        signals.raise(Signal::PauseChanged);
        let raised = signals.raised().await;
        assert!(raised.has(Signal::Published) && raised.has(Signal::PauseChanged));
        assert!(!raised.has(Signal::Requested));
    }

    #[tokio::test]
    async fn only_partitions_that_are_owned_wake() {
        let signals = WakeSignals::default();
        signals.set_owned([3]);
        signals.peer_published_in(&[4, 5]);
        assert_eq!(signals.raised.load(Ordering::Acquire), 0);
        for partitions in [&[3][..], &[]] {
            signals.peer_published_in(partitions);
            assert!(signals.raised().await.has(Signal::PeerPublished));
        }
    }
}
