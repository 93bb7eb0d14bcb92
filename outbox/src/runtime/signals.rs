//! [`WakeSignals`]: tells a dispatcher of the same process that there may be something to do.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

/// Shared by an outbox and its dispatcher. A call that nobody waits for is remembered, so none is
/// lost; it is only a hint, and the poll underneath finds everything without it.
#[derive(Debug, Default)]
pub(crate) struct WakeSignals {
    notify: Notify,
    /// Something was published in a transaction that has not committed yet, as far as we know.
    soon: AtomicBool,
    /// The same, of something that is due at a later time.
    later: AtomicBool,
    /// A handler was paused or resumed.
    paused: AtomicBool,
    now: AtomicBool,
    /// Records were published, by whomever.
    records: AtomicBool,
    /// Partitions changed hands, or an instance has come or gone.
    leases: AtomicBool,
    /// The dispatcher has to know whether its session is still alive.
    confirm: Notify,
    /// The partitions of this process. Written by the dispatcher.
    owned: Mutex<HashSet<u16>>,
}

/// What a dispatcher was woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signals {
    pub(crate) now: bool,
    pub(crate) soon: bool,
    pub(crate) later: bool,
    pub(crate) paused: bool,
    pub(crate) records: bool,
    pub(crate) leases: bool,
}

impl WakeSignals {
    /// There is something to do now.
    pub(crate) fn now(&self) {
        self.call(&self.now);
    }

    /// There will be, when a transaction of this process commits.
    pub(crate) fn soon(&self) {
        self.call(&self.soon);
    }

    /// There will be, some time after a transaction of this process has committed.
    pub(crate) fn later(&self) {
        self.call(&self.later);
    }

    /// Other handlers are paused than before.
    pub(crate) fn paused(&self) {
        self.call(&self.paused);
    }

    /// Records were published in these partitions; none are named if that is not known.
    pub(crate) fn records(&self, parts: &[u16]) {
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = parts.is_empty() || parts.iter().any(|part| owned.contains(part));
        drop(owned);
        if ours {
            self.call(&self.records);
        }
    }

    /// Partitions changed hands, or an instance has come or gone.
    pub(crate) fn leases(&self) {
        self.call(&self.leases);
    }

    /// This process owns these partitions now.
    pub(crate) fn own(&self, parts: impl IntoIterator<Item = u16>) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        *owned = parts.into_iter().collect();
    }

    /// The dispatcher wants to start something, and is not sure of its session for much longer.
    pub(crate) fn confirm(&self) {
        self.confirm.notify_one();
    }

    /// Waits until it does. Dropping it loses nothing.
    pub(crate) async fn confirmation_wanted(&self) {
        self.confirm.notified().await;
    }

    fn call(&self, what: &AtomicBool) {
        what.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Waits for a call. Dropping it loses nothing.
    pub(crate) async fn called(&self) -> Signals {
        self.notify.notified().await;
        Signals {
            now: self.now.swap(false, Ordering::AcqRel),
            soon: self.soon.swap(false, Ordering::AcqRel),
            later: self.later.swap(false, Ordering::AcqRel),
            paused: self.paused.swap(false, Ordering::AcqRel),
            records: self.records.swap(false, Ordering::AcqRel),
            leases: self.leases.swap(false, Ordering::AcqRel),
        }
    }
}
