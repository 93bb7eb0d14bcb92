//! A clock that is wrong by the number of seconds in a file.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use outbox::clock::{Clock, SystemClock};

/// The machine's time plus an offset.
#[derive(Debug, Clone, Default)]
pub(crate) struct OffsetClock {
    seconds: Arc<AtomicI64>,
}

impl OffsetClock {
    /// Reads the offset in seconds from this file every 50 ms. Without a file the offset is 0.
    pub(crate) fn follow(path: PathBuf) -> Self {
        let clock = Self::default();
        let seconds = Arc::clone(&clock.seconds);
        tokio::spawn(async move {
            loop {
                let text = tokio::fs::read_to_string(&path).await.unwrap_or_default();
                seconds.store(text.trim().parse().unwrap_or(0), Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        clock
    }
}

impl Clock for OffsetClock {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now();
        let offset = SignedDuration::from_secs(self.seconds.load(Ordering::Relaxed));
        now.checked_add(offset).unwrap_or(now)
    }
}
