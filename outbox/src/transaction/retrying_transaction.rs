//! [`RetryingTransaction`]: the settings of a transaction before it runs.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

use super::{
    Cause, ClosureError, CommandError, Deadline, Isolation, Reason, Stopped, TransactionError,
    Transactions, Tx, TxRetry, command, limits::Cancel, run::Run,
};
use crate::{
    store::Database,
    telemetry::metrics::transactions::{self as metrics, Outcome},
};

/// A transaction that has not started; see [`transaction`](crate::transaction).
///
/// Defaults: the isolation level of the database, no deadline, and [`TxRetry::interactive`].
#[must_use = "nothing happens until `run`"]
pub struct RetryingTransaction<Db: Database, C = WithoutCommand> {
    transactions: Transactions<Db>,
    settings: Settings,
    cancel: Option<Cancel>,
    command: C,
}

/// The settings that all attempts share.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) operation: &'static str,
    pub(super) isolation: Option<Isolation>,
    pub(super) is_read_only: bool,
    pub(super) deadline: Option<Deadline>,
    pub(super) policy: TxRetry,
    pub(super) correlation_id: Option<String>,
}

/// A transaction without a command id: its closure runs in each call of `run`.
#[derive(Debug, Clone, Copy)]
pub struct WithoutCommand;

/// A transaction with a command id: its closure succeeds at most once for each id.
#[derive(Debug)]
pub struct WithCommand(Result<command::Command, CommandError>);

impl<Db: Database> RetryingTransaction<Db> {
    pub(super) fn new(transactions: Transactions<Db>, operation: &'static str) -> Self {
        Self {
            transactions,
            settings: Settings {
                operation,
                isolation: None,
                is_read_only: false,
                deadline: None,
                policy: TxRetry::interactive(),
                correlation_id: None,
            },
            cancel: None,
            command: WithoutCommand,
        }
    }

    /// Makes the transaction a command. Its result is stored under this id in its own transaction.
    /// A later call with the same id returns the stored result, and its closure does not run. Of
    /// two calls at the same time the second waits for the first. So a command can be repeated
    /// after any failure, even if the outcome of a commit is unknown.
    ///
    /// An error of the closure is not stored. To have a refusal remembered, return it as the
    /// result. The id appears in the log lines of retries, so it should say nothing about a person.
    /// Each operation has its own ids. The dispatcher deletes commands after seven days; see
    /// [`OutboxBuilder::command_retention`](crate::outbox::OutboxBuilder::command_retention).
    pub fn command_id(self, id: impl fmt::Display) -> RetryingTransaction<Db, WithCommand> {
        RetryingTransaction {
            transactions: self.transactions,
            settings: self.settings,
            cancel: self.cancel,
            command: WithCommand(command::Command::new(id.to_string())),
        }
    }

    /// Runs the closure in a transaction and commits. After a retryable failure it rolls back and
    /// runs the closure again in a new transaction, as often as the policy and the deadline allow.
    ///
    /// **The closure may run more than once.** An error of the closure ends the run, unless it is
    /// or contains a database error that the policy retries. If the future is dropped, the
    /// transaction is rolled back.
    ///
    /// # Errors
    /// The error of the closure or of the database, and why no other attempt followed.
    pub async fn run<T, E, Kind, F, Fut>(mut self, closure: F) -> Result<T, TransactionError<E>>
    where
        F: FnMut(Tx<'static, Db>) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send,
        E: ClosureError<Kind>,
    {
        let run = Run {
            transactions: &self.transactions,
            settings: &self.settings,
            command: None,
            as_error: E::as_error,
        };
        run.attempts(&mut self.cancel, closure).await
    }
}

impl<Db: Database> RetryingTransaction<Db, WithCommand> {
    /// The content of the request. A fingerprint of it is stored with the result. If the same id
    /// comes with a different request, `run` fails instead of returning the wrong result.
    pub fn request(mut self, request: &impl Serialize) -> Self {
        let command = self.command.0;
        self.command = WithCommand(command.and_then(|command| command.with_request(request)));
        self
    }

    /// Like [`run`](RetryingTransaction::run) without a command, but at most one call for each id
    /// commits. All calls return the result of that one.
    ///
    /// # Errors
    /// As without a command. Also if the id belongs to a different request, or if the result
    /// cannot be stored or read.
    pub async fn run<T, E, Kind, F, Fut>(mut self, closure: F) -> Result<T, TransactionError<E>>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Tx<'static, Db>) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send,
        E: ClosureError<Kind>,
    {
        let command = if self.settings.is_read_only {
            Err(CommandError::ReadOnly)
        } else {
            self.command.0
        };
        let refused = |error| {
            let operation = self.settings.operation;
            metrics::ended(operation, Outcome::Refused(Reason::Command));
            TransactionError {
                operation,
                attempts: 0,
                stopped: Stopped::NotRetryable,
                reason: Reason::Command,
                is_unknown: false,
                cause: Cause::Command(error),
                as_error: E::as_error,
            }
        };
        let run = Run {
            transactions: &self.transactions,
            settings: &self.settings,
            command: Some((command.map_err(refused)?, command::Codec::json())),
            as_error: E::as_error,
        };
        run.attempts(&mut self.cancel, closure).await
    }
}

impl<Db: Database, C> RetryingTransaction<Db, C> {
    /// The isolation level. Default: that of the database.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.settings.isolation = Some(isolation);
        self
    }

    /// The transaction only reads. PostgreSQL and MySQL refuse a statement that writes; on SQLite
    /// its effect is rolled back.
    pub fn read_only(mut self) -> Self {
        self.settings.is_read_only = true;
        self
    }

    /// The time by which the caller needs the answer.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.settings.deadline = Some(deadline);
        self
    }

    /// Which failures are retried, how often and when.
    pub fn policy(mut self, policy: TxRetry) -> Self {
        self.settings.policy = policy;
        self
    }

    /// Cancels the run when this future completes, for example when the program stops. A wait
    /// between attempts ends. A running attempt is rolled back. A commit that was sent is waited
    /// for. Dropping the future of `run` does the same, but returns no error.
    ///
    /// ```
    /// # async fn close(transactions: outbox::transaction::Transactions<sqlx::Sqlite>) {
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let transaction = transactions.transaction("CloseCase").cancel_on(async { let _ = stopped.await; });
    /// # drop((stop, transaction));
    /// # }
    /// ```
    pub fn cancel_on(mut self, cancel: impl Future<Output = ()> + Send + 'static) -> Self {
        self.cancel = Some(Box::pin(cancel));
        self
    }

    /// An id that appears in the log lines of retries.
    pub fn correlation_id(mut self, id: impl fmt::Display) -> Self {
        self.settings.correlation_id = Some(id.to_string());
        self
    }
}

impl<Db: Database, C> fmt::Debug for RetryingTransaction<Db, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingTransaction")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
