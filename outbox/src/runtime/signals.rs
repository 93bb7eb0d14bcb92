//! [`WakeSignals`]: how publishers, operations and the watcher wake the event loop.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU8, Ordering},
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

use crate::record::Partition;

/// Publishers, operations and the watcher raise signals; the event loop takes them. A signal stays
/// raised until it is taken, so none is lost. It is a hint: the poll finds everything without it.
#[derive(Debug, Default)]
pub(crate) struct WakeSignals {
    notify: Notify,
    /// One bit per [`Signal`].
    raised: AtomicU8,
    /// Notified when the event loop asks the watcher to verify the session.
    verify: Notify,
    /// The partitions of this process. The event loop writes it after each claim.
    owned: Mutex<HashSet<Partition>>,
}

/// Why the event loop is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// There is something to do now.
    Requested,
    /// This process published in a transaction that may commit at any moment.
    Published,
    /// Like `Published`, for a record that is due at a later time.
    PublishedForLater,
    /// Records of any process were committed.
    PeerPublished,
    /// Partitions have new owners, or an instance joined or left.
    OwnershipChanged,
    /// A handler was paused or resumed.
    PauseChanged,
    /// A record was restored. Its id may be below the watermark of its partition.
    Restored,
}

/// The signals that were raised since the event loop last took them.
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
    pub(crate) fn peer_published_in(&self, partitions: &[Partition]) {
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_concerned =
            partitions.is_empty() || partitions.iter().any(|partition| owned.contains(partition));
        drop(owned);
        if is_concerned {
            self.raise(Signal::PeerPublished);
        }
    }

    pub(crate) fn set_owned(&self, partitions: impl IntoIterator<Item = Partition>) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        *owned = partitions.into_iter().collect();
    }

    /// Asks the watcher to verify the session now.
    pub(crate) fn request_verification(&self) {
        self.verify.notify_one();
    }

    /// Waits until the event loop asks for a verification. Dropping it loses nothing.
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
    async fn only_owned_partitions_wake_the_event_loop() {
        let signals = WakeSignals::default();
        let owned = [Partition::new(3)];
        signals.set_owned(owned);
        signals.peer_published_in(&[4, 5].map(Partition::new));
        assert_eq!(signals.raised.load(Ordering::Acquire), 0);
        for partitions in [&owned[..], &[]] {
            signals.peer_published_in(partitions);
            assert!(signals.raised().await.has(Signal::PeerPublished));
        }
    }
}
