//! The log lines of this room. Their fields are stable. No field contains text of the closure, of
//! its error or of the database.

use std::time::Duration;

use super::Reason;

/// The target of all lines.
const TARGET: &str = "outbox::transaction";

/// Fields of the lines about a failed attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedAttempt<'a> {
    pub(super) operation: &'static str,
    pub(super) reason: Reason,
    pub(super) command_id: Option<&'a str>,
    pub(super) correlation_id: Option<&'a str>,
}

impl FailedAttempt<'_> {
    /// `attempt` is the number of the next attempt. At `INFO` if `is_rare`, else at `DEBUG`.
    pub(super) fn retry(self, attempt: u32, delay: Duration, is_rare: bool) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: TARGET,
                    operation = self.operation,
                    attempt,
                    reason = self.reason.as_str(),
                    delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    command_id = self.command_id,
                    correlation_id = self.correlation_id,
                    "transaction failed; retrying"
                )
            };
        }
        if is_rare {
            line!(info);
        } else {
            line!(debug);
        }
    }

    /// The failure was retryable, and a limit forbids another attempt.
    pub(super) fn exhausted(self, attempts: u32) {
        tracing::warn!(
            target: TARGET,
            operation = self.operation,
            attempts,
            reason = self.reason.as_str(),
            command_id = self.command_id,
            correlation_id = self.correlation_id,
            "transaction failed; retries exhausted"
        );
    }
}

pub(super) fn circuit_opened() {
    tracing::warn!(
        target: TARGET,
        "database unreachable; transactions are refused until a probe reaches it"
    );
}

pub(super) fn circuit_closed() {
    tracing::info!(target: TARGET, "database reachable again; transactions are accepted");
}
