//! [`Liveness`]: whether a dispatcher lives, as its own loop says.

use std::{
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// Shared by an outbox and its dispatcher, which writes; probes read.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// What the beats are counted from.
    began: Instant,
    /// Milliseconds from then to the last beat.
    beat: AtomicU64,
    /// One of [`State`].
    state: AtomicU8,
}

/// What became of the dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    NotStarted = 0,
    Running = 1,
    Stopped = 2,
    Panicked = 3,
}

impl Liveness {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            beat: AtomicU64::new(0),
            state: AtomicU8::new(State::NotStarted as u8),
        }
    }

    /// The dispatcher's loop has come around once more.
    pub(crate) fn beats(&self, now: Instant) {
        let millis = now.saturating_duration_since(self.began).as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        self.beat.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn starts(&self) {
        self.beats(Instant::now());
        self.set(State::Running);
    }

    /// Called while it is being dropped: a panic is still under way then.
    pub(crate) fn ends(&self) {
        self.set(match std::thread::panicking() {
            true => State::Panicked,
            false => State::Stopped,
        });
    }

    fn set(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::NotStarted,
            1 => State::Running,
            2 => State::Stopped,
            _ => State::Panicked,
        }
    }

    /// How long ago it beat last.
    pub(super) fn silent_for(&self, now: Instant) -> Duration {
        let beat = Duration::from_millis(self.beat.load(Ordering::Relaxed));
        let lived = now.saturating_duration_since(self.began);
        lived.saturating_sub(beat)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn who_ends_in_a_panic_is_told_from_who_was_stopped() {
        struct Ends<'a>(&'a Liveness);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                self.0.ends();
            }
        }
        let heart = Liveness::new();
        drop(Ends(&heart));
        assert_eq!(heart.state(), State::Stopped);
        let panicked = catch_unwind(|| {
            let _ends = Ends(&heart);
            panic!("as the test wants it");
        });
        assert!(panicked.is_err());
        assert_eq!(heart.state(), State::Panicked);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_the_last_beat() {
        let heart = Liveness::new();
        let start = Instant::now();
        let seconds = Duration::from_secs;
        assert_eq!(heart.state(), State::NotStarted);
        tokio::time::advance(seconds(5)).await;
        heart.starts();
        assert_eq!(heart.silent_for(start + seconds(7)), seconds(2));
        heart.beats(start + seconds(7));
        assert_eq!(heart.silent_for(start + seconds(7)), seconds(0));
        assert_eq!(heart.silent_for(start + seconds(60)), seconds(53));
        heart.ends();
        assert_eq!(heart.state(), State::Stopped);
    }
}
