//! [`AttemptLog`]: the log lines about failed attempts. A successful attempt has no line: the
//! metrics count it, and it has a span.

use jiff::Timestamp;

use crate::telemetry::trace::{outcome, rate::Rate};
use crate::{
    record::{Attempt, Record},
    registry::HandlerEntry,
    retry::{Completion, Decision},
};

/// Log filters select these lines by this target.
const TARGET: &str = "outbox::attempt";

/// Writes the log lines of one handler.
#[derive(Debug, Default)]
pub(crate) struct AttemptLog {
    /// `observability.log-keys`.
    has_keys: bool,
    retries: Rate,
}

impl AttemptLog {
    pub(crate) fn new(has_keys: bool) -> Self {
        Self {
            has_keys,
            retries: Rate::default(),
        }
    }

    /// The key of the record, if the configuration allows keys in logs and spans.
    pub(super) fn key<'a>(&self, record: &'a Record) -> Option<&'a str> {
        self.has_keys.then_some(&*record.key)
    }

    /// Logs the decision after a failed attempt.
    pub(crate) fn decided(
        &self,
        handler: &HandlerEntry,
        record: &Record,
        attempt: Attempt,
        decision: &Decision,
        now: Timestamp,
    ) {
        /// Adds the fields that all lines have.
        macro_rules! log {
            ($level:ident, $error:expr, { $($more:tt)* }, $message:literal) => {
                tracing::$level!(
                    target: TARGET,
                    handler = handler.id(),
                    event = &*record.event,
                    record_id = record.id,
                    attempt = attempt.number,
                    key = self.key(record),
                    failure = $error.kind().name(),
                    $($more)*
                    $message
                )
            };
        }
        match decision {
            Decision::RetryAt { delay, error, .. } => {
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                macro_rules! log_retry {
                    ($level:ident) => {
                        log!($level, error, { delay_ms, }, "attempt failed; the record will be retried")
                    };
                }
                // A handler that fails often must not hide other log lines.
                if self.retries.is_low(now) {
                    log_retry!(info);
                } else {
                    log_retry!(debug);
                }
            }
            Decision::Failed { error, because } => log!(
                error,
                error,
                { because = outcome::because(*because), },
                "record failed permanently; it stays until it is replayed or discarded"
            ),
            Decision::Completed(Completion::FellBack { error, because }) => log!(
                warn,
                error,
                { because = outcome::because(*because), },
                "handler failed permanently; its fallback completed the record"
            ),
            Decision::Completed(Completion::Handled | Completion::Skipped)
            | Decision::NoHandler(_) => {}
        }
    }
}
