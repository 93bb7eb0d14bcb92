//! [`Liveness`]: whether the event loop of a dispatcher still runs.

use std::{
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::DispatcherHealth;

/// Shared by an outbox and its dispatcher. The event loop writes it, probes read it.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// The start of the time of `last_tick`.
    created_at: Instant,
    /// Milliseconds from `created_at` to the last tick.
    last_tick: AtomicU64,
    /// A [`DispatcherHealth`], but never `Stuck`: each probe chooses the limit for that.
    state: AtomicU8,
}

impl Liveness {
    pub(crate) fn new() -> Self {
        Self {
            created_at: Instant::now(),
            last_tick: AtomicU64::new(0),
            state: AtomicU8::new(DispatcherHealth::NotStarted as u8),
        }
    }

    /// The event loop calls this each time that it runs.
    pub(crate) fn tick(&self, now: Instant) {
        let millis = now.saturating_duration_since(self.created_at).as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        self.last_tick.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn started(&self) {
        self.tick(Instant::now());
        self.set(DispatcherHealth::Running);
    }

    /// Called while the event loop is dropped, so a panic of it is still unwinding. Changes nothing if
    /// the event loop was not started.
    pub(crate) fn stopped(&self) {
        if self.state() == DispatcherHealth::Running {
            self.set(if std::thread::panicking() {
                DispatcherHealth::Panicked
            } else {
                DispatcherHealth::Stopped
            });
        }
    }

    fn set(&self, state: DispatcherHealth) {
        self.state.store(state as u8, Ordering::Release);
    }

    pub(super) fn state(&self) -> DispatcherHealth {
        use DispatcherHealth::{NotStarted, Panicked, Running, Stopped};
        let state = self.state.load(Ordering::Acquire);
        let mut others = [NotStarted, Running, Stopped].into_iter();
        let found = others.find(|one| *one as u8 == state);
        found.unwrap_or(Panicked)
    }

    /// The time since the last tick.
    pub(super) fn silent_for(&self, now: Instant) -> Duration {
        let last_tick = Duration::from_millis(self.last_tick.load(Ordering::Relaxed));
        let lived = now.saturating_duration_since(self.created_at);
        lived.saturating_sub(last_tick)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_panic_differs_from_a_stop() {
        struct StopOnDrop<'a>(&'a Liveness);
        impl Drop for StopOnDrop<'_> {
            fn drop(&mut self) {
                self.0.stopped();
            }
        }
        let liveness = Liveness::new();
        drop(StopOnDrop(&liveness));
        assert_eq!(liveness.state(), DispatcherHealth::NotStarted);
        liveness.started();
        drop(StopOnDrop(&liveness));
        assert_eq!(liveness.state(), DispatcherHealth::Stopped);
        liveness.started();
        let panicked = catch_unwind(|| {
            let _stop = StopOnDrop(&liveness);
            panic!("the event loop panicked");
        });
        assert!(panicked.is_err());
        assert_eq!(liveness.state(), DispatcherHealth::Panicked);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_the_last_tick() {
        let liveness = Liveness::new();
        let start = Instant::now();
        let seconds = Duration::from_secs;
        assert_eq!(liveness.state(), DispatcherHealth::NotStarted);
        tokio::time::advance(seconds(5)).await;
        liveness.started();
        assert_eq!(liveness.silent_for(start + seconds(7)), seconds(2));
        liveness.tick(start + seconds(7));
        assert_eq!(liveness.silent_for(start + seconds(7)), seconds(0));
        assert_eq!(liveness.silent_for(start + seconds(60)), seconds(53));
        liveness.stopped();
        assert_eq!(liveness.state(), DispatcherHealth::Stopped);
    }
}
