//! The log lines about attempts that failed. Those that went well have none: they are counted, and
//! have a span.

use jiff::Timestamp;

use crate::telemetry::trace::{outcome, rate::Rate};
use crate::{
    record::{Attempt, Record},
    registry::HandlerEntry,
    retry::{Completion, Decision},
};

/// To filter these lines by.
const TARGET: &str = "outbox::attempt";

/// What the lines of one handler are told by.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// `observability.log-keys`.
    keys: bool,
    retries: Rate,
}

impl Lines {
    pub(crate) fn new(keys: bool) -> Self {
        Self {
            keys,
            retries: Rate::default(),
        }
    }

    /// The record's key, if it may be told.
    pub(super) fn key<'a>(&self, record: &'a Record) -> Option<&'a str> {
        self.keys.then_some(&*record.key)
    }

    /// Tells what was decided after an attempt, if that is worth a line.
    pub(crate) fn decided(
        &self,
        handler: &HandlerEntry,
        record: &Record,
        attempt: Attempt,
        decision: &Decision,
        now: Timestamp,
    ) {
        /// The fields that all of them have.
        macro_rules! line {
            ($level:ident, $error:expr, { $($more:tt)* }, $message:literal) => {
                tracing::$level!(
                    target: TARGET,
                    handler = handler.id(),
                    event = &*record.event,
                    record_id = record.id,
                    attempt = attempt.number,
                    key = self.key(record),
                    failure = outcome::failure($error),
                    $($more)*
                    $message
                )
            };
        }
        match decision {
            Decision::RetryAt { delay, error, .. } => {
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                macro_rules! retried {
                    ($level:ident) => {
                        line!($level, error, { delay_ms, }, "an attempt failed; the record is retried")
                    };
                }
                // A handler that keeps failing must not drown what else is said.
                match self.retries.is_low(now) {
                    true => retried!(info),
                    false => retried!(debug),
                }
            }
            Decision::Failed { error, because } => line!(
                error,
                error,
                { because = outcome::because(*because), },
                "a record failed for good; it stays until it is replayed or discarded"
            ),
            Decision::Completed(Completion::FellBack { error, because }) => line!(
                warn,
                error,
                { because = outcome::because(*because), },
                "a handler failed for good; its fallback has completed the record"
            ),
            Decision::Completed(Completion::Handled | Completion::Skipped)
            | Decision::NoHandler(_) => {}
        }
    }
}
