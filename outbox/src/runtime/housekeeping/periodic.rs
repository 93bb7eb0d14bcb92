//! [`Periodic`]: starts a task at regular intervals.

use std::time::Duration;

use tokio::{task::JoinSet, time::Instant};

use crate::outbox::clock::YEAR;

/// Starts a task at regular intervals, one run at a time. Dropping it aborts the task.
#[derive(Debug)]
pub(super) struct Periodic {
    every: Duration,
    next: Instant,
    /// The task, while it runs.
    running: JoinSet<()>,
}

impl Periodic {
    pub(super) fn new(every: Duration, first: Instant) -> Self {
        Self {
            every: every.min(YEAR),
            next: first,
            running: JoinSet::new(),
        }
    }

    /// Starts the task if its time has come. If the last run has not ended, the new one is
    /// skipped. Returns whether the time has come.
    pub(super) fn start<F>(&mut self, now: Instant, task: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.every;
            // Removes the last run if it has ended, also after a panic.
            self.running.try_join_next();
            if self.running.is_empty() {
                self.running.spawn(task());
            }
        }
        is_due
    }

    pub(super) fn next_wake(&self) -> Instant {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use tokio::time::{advance, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_run_at_a_time_until_the_owner_drops_it() {
        let second = Duration::from_secs(1);
        let mut periodic = Periodic::new(second, Instant::now());
        let runs = Arc::new(AtomicU32::new(0));
        let start = |periodic: &mut Periodic| {
            let runs = Arc::clone(&runs);
            periodic.start(Instant::now(), || async move {
                runs.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(1500)).await;
                runs.fetch_add(10, Ordering::Relaxed);
            })
        };
        assert!(start(&mut periodic) && !start(&mut periodic));
        sleep(second).await;
        assert!(start(&mut periodic), "its time has come, and it is busy");
        sleep(second).await;
        assert!(start(&mut periodic));
        advance(second / 2).await;
        drop(periodic);
        sleep(second * 2).await;
        assert_eq!(runs.load(Ordering::Relaxed), 12);
    }
}
