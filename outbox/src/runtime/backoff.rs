//! [`DatabaseBackoff`]: the delay before the next try, and the log lines, while the database fails.

use std::time::Duration;

use tokio::time::Instant;

use crate::outbox::error::Operation;
use crate::{
    retry::{ThreadRandom, backoff, between},
    runtime::meters::database_error,
};

const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(2);
/// While the database keeps failing, the error is logged every 30 s.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// Consecutive failures of the database on one connection. The owner of the connection writes it.
#[derive(Debug, Default)]
pub(crate) struct DatabaseBackoff {
    failures: u32,
    failing_since: Option<Instant>,
    logged_at: Option<Instant>,
}

impl DatabaseBackoff {
    /// Returns how long to wait before the next try: 50 ms to 2 s, longer each time, with a random
    /// part that differs between processes.
    pub(crate) fn failed(&mut self, operation: Operation, error: &sqlx::Error) -> Duration {
        let now = Instant::now();
        database_error(operation);
        self.failures = self.failures.saturating_add(1);
        self.failing_since.get_or_insert(now);
        let is_logged = |at: Instant| now.duration_since(at) < LOG_EVERY;
        if !self.logged_at.is_some_and(is_logged) {
            self.logged_at = Some(now);
            let (operation, failures) = (operation.as_str(), self.failures);
            tracing::warn!(operation, %error, failures, "database error; retrying");
        }
        let base = backoff::exponential(FIRST_DELAY, 2.0, LONGEST_DELAY, self.failures);
        between(&ThreadRandom, base / 2, base)
    }

    /// The database answers.
    pub(crate) fn recovered(&mut self) {
        if let Some(since) = self.failing_since {
            let (failures, seconds) = (self.failures, since.elapsed().as_secs_f32());
            tracing::info!(failures, seconds, "database answers again");
            *self = Self::default();
        }
    }
}
