//! The log lines about retries. Their fields are stable; none has anything that the closure, its
//! error or the database said.

use std::time::Duration;

use super::Reason;

/// To filter these lines by.
const TARGET: &str = "outbox::transaction";

/// Which run of which operation a line is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) operation: &'static str,
    pub(super) reason: Reason,
    pub(super) command_id: Option<&'a str>,
    pub(super) correlation_id: Option<&'a str>,
}

impl About<'_> {
    /// Another attempt follows. For people while there are few of these, of all operations.
    pub(super) fn retry(self, attempt: u32, delay: Duration, few: bool) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: TARGET,
                    event = "transaction_retry",
                    operation = self.operation,
                    attempt,
                    reason = self.reason.as_str(),
                    delayMs = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    commandId = self.command_id,
                    correlationId = self.correlation_id,
                )
            };
        }
        match few {
            true => line!(info),
            false => line!(debug),
        }
    }

    /// It could be retried, and is not.
    pub(super) fn exhausted(self, attempts: u32) {
        tracing::warn!(
            target: TARGET,
            event = "transaction_retry_exhausted",
            operation = self.operation,
            attempts,
            reason = self.reason.as_str(),
            commandId = self.command_id,
            correlationId = self.correlation_id,
        );
    }
}
