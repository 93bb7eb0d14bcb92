//! The log lines of this room. Their fields are stable. No field contains text of the closure, of
//! its error or of the database.

use std::time::Duration;

use super::{Reason, run::Run};
use crate::store::Database;

/// The target of all lines.
const TARGET: &str = "outbox::transaction";

impl<Db: Database, T, E> Run<'_, Db, T, E> {
    fn command_id(&self) -> Option<&str> {
        self.command.as_ref().map(|(command, _)| &*command.id)
    }

    /// `attempt` is the number of the next attempt. At `INFO` if retries are rare, else at `DEBUG`.
    pub(super) fn log_retry(&self, attempt: u32, reason: Reason, delay: Duration) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: TARGET,
                    operation = self.settings.operation,
                    attempt,
                    reason = reason.as_str(),
                    delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    command_id = self.command_id(),
                    correlation_id = self.settings.correlation_id,
                    "transaction failed; retrying"
                )
            };
        }
        let now = self.transactions.clock.now();
        if self.transactions.shared.logged_retries.is_low(now) {
            line!(info);
        } else {
            line!(debug);
        }
    }

    /// The failure was retryable, and a limit forbids another attempt.
    pub(super) fn log_exhausted(&self, attempts: u32, reason: Reason) {
        tracing::warn!(
            target: TARGET,
            operation = self.settings.operation,
            attempts,
            reason = reason.as_str(),
            command_id = self.command_id(),
            correlation_id = self.settings.correlation_id,
            "transaction failed; retries exhausted"
        );
    }

    /// The circuit is open. At `WARN` if refusals are rare, else at `DEBUG`: while a database is
    /// unreachable, every call of a service is refused.
    pub(super) fn log_refused(&self, attempts: u32) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: TARGET,
                    operation = self.settings.operation,
                    attempts,
                    reason = Reason::CircuitOpen.as_str(),
                    command_id = self.command_id(),
                    correlation_id = self.settings.correlation_id,
                    "transaction refused; the database is unreachable"
                )
            };
        }
        let now = self.transactions.clock.now();
        if self.transactions.shared.logged_refusals.is_low(now) {
            line!(warn);
        } else {
            line!(debug);
        }
    }
}

/// The server could not be told to end a statement: the rollback waits until it ends by itself.
pub(super) fn not_interrupted(reason: Reason) {
    tracing::warn!(
        target: TARGET,
        reason = reason.as_str(),
        "the statement of a stopped transaction could not be ended on the server"
    );
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
