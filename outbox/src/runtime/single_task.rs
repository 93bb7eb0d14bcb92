//! [`SingleTask`]: one task at a time, with the connection that it needs.

use std::future::pending;

use tokio::task::JoinHandle;

/// Runs one task at a time. The task gets `C`, a connection with its state, and returns it with its
/// answer. Dropping it aborts the task.
pub(super) struct SingleTask<C, A> {
    /// Set while no task runs.
    idle: Option<C>,
    running: Option<JoinHandle<(C, A)>>,
}

/// A task panicked. Its connection is lost; [`SingleTask::replace`] has to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskPanicked;

impl<C: Send + 'static, A: Send + 'static> SingleTask<C, A> {
    pub(super) fn new(connection: C) -> Self {
        Self {
            idle: Some(connection),
            running: None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle.is_some()
    }

    /// Starts the task, unless another one runs.
    pub(super) fn start<F>(&mut self, task: impl FnOnce(C) -> F)
    where
        F: Future<Output = (C, A)> + Send + 'static,
    {
        if let Some(connection) = self.idle.take() {
            self.running = Some(tokio::spawn(task(connection)));
        }
    }

    /// Waits for the answer of the task. Never returns while none runs. Dropping it loses nothing.
    pub(super) async fn finished(&mut self) -> Result<A, TaskPanicked> {
        let Some(task) = &mut self.running else {
            return pending().await;
        };
        let ended = task.await;
        self.running = None;
        let (connection, answer) = ended.map_err(|_| TaskPanicked)?;
        self.idle = Some(connection);
        Ok(answer)
    }

    /// Aborts the task, if one runs, and continues with another connection.
    pub(super) fn replace(&mut self, connection: C) {
        self.abort();
        self.idle = Some(connection);
    }
}

impl<C, A> SingleTask<C, A> {
    /// Aborts the task, if one runs, together with its connection.
    pub(super) fn abort(&mut self) {
        if let Some(task) = self.running.take() {
            task.abort();
        }
    }
}

impl<C, A> Drop for SingleTask<C, A> {
    fn drop(&mut self) {
        self.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_task_runs_at_a_time_and_returns_its_connection() {
        let mut tasks = SingleTask::new(1);
        tasks.start(async |n| (n + 1, "first"));
        tasks.start(async |n| (n + 10, "second"));
        assert!(!tasks.is_idle());
        assert_eq!(tasks.finished().await, Ok("first"));
        tasks.start(async |n| (n, if n == 2 { "kept" } else { "lost" }));
        assert_eq!(tasks.finished().await, Ok("kept"));
        let idle = timeout(Duration::from_secs(1), tasks.finished()).await;
        assert!(idle.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_loses_the_connection() {
        let mut tasks = SingleTask::<u8, ()>::new(1);
        tasks.start(async |_| panic!("on purpose"));
        assert_eq!(tasks.finished().await, Err(TaskPanicked));
        assert!(!tasks.is_idle());
        tasks.replace(2);
        assert!(tasks.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_it_aborts_its_task() {
        let alive = Arc::new(());
        let mut tasks = SingleTask::new(Arc::clone(&alive));
        tasks.start(async |alive| {
            sleep(Duration::from_secs(60)).await;
            (alive, ())
        });
        drop(tasks);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
