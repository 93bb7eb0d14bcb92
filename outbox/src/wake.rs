//! [`Wake`]: tells a dispatcher of the same process that there may be something to do.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Shared by an outbox and its dispatcher. A call that nobody waits for is remembered, so none is
/// lost; it is only a hint, and the poll underneath finds everything without it.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    notify: Notify,
    /// Something was published in a transaction that has not committed yet, as far as we know.
    soon: AtomicBool,
}

impl Wake {
    /// There is something to do now.
    pub(crate) fn now(&self) {
        self.notify.notify_one();
    }

    /// There will be, when a transaction of this process commits.
    pub(crate) fn soon(&self) {
        self.soon.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Waits for either. Whether it was [`soon`](Self::soon). Dropping it loses nothing.
    pub(crate) async fn called(&self) -> bool {
        self.notify.notified().await;
        self.soon.swap(false, Ordering::AcqRel)
    }
}
