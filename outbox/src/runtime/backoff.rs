//! The database fails: wait, say so, and go on.

use std::time::Duration;

use tokio::time::Instant;

use crate::outbox::error::Operation;
use crate::{
    retry::{ThreadRandom, backoff, between},
    runtime::meters::database_error,
};

/// Consecutive failures of the database. Written by whoever talks to it; dropped with it.
#[derive(Debug, Default)]
pub(crate) struct DatabaseBackoff {
    failures: u32,
    began: Option<Instant>,
    said: Option<Instant>,
}

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);
/// A log line is repeated after this long.
const SAID_AGAIN: Duration = Duration::from_secs(30);

impl DatabaseBackoff {
    /// How long to wait before the next try: longer each time, and never the same for two
    /// processes.
    pub(crate) fn failed(&mut self, operation: Operation, error: &sqlx::Error) -> Duration {
        let now = Instant::now();
        database_error(operation);
        self.failures = self.failures.saturating_add(1);
        self.began.get_or_insert(now);
        let is_new = self
            .said
            .is_none_or(|said| now.duration_since(said) >= SAID_AGAIN);
        if is_new {
            self.said = Some(now);
            tracing::warn!(operation = operation.as_str(), %error, failures = self.failures, "database error; retrying");
        }
        let base = backoff::exponential(FIRST, 2.0, LONGEST, self.failures);
        between(&ThreadRandom, base / 2, base)
    }

    /// The database answers.
    pub(crate) fn over(&mut self) {
        if let Some(began) = self.began.take() {
            let seconds = began.elapsed().as_secs_f32();
            tracing::info!(
                failures = self.failures,
                seconds,
                "the database answers again"
            );
            *self = Self::default();
        }
    }
}
