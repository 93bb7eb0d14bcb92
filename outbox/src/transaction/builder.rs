//! [`RetryingTransaction`]: everything that is said about a transaction before it runs.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

use super::{
    Cause, CommandError, Deadline, Isolation, Reason, Stopped, TransactionError, Transactions, Tx,
    TxRetry,
    attempt::{Cancel, Plan},
    command::{Codec, Command, fingerprint},
    error::ClosureError,
    run::Rules,
};
use crate::store::Database;

/// A transaction that is about to run; see [`transaction`](crate::transaction).
///
/// Without anything else said: the database's own isolation level, no deadline, and
/// [`TxRetry::interactive`].
#[must_use = "nothing happens until `run`"]
pub struct RetryingTransaction<Db: Database, C = WithoutCommand> {
    transactions: Transactions<Db>,
    operation: &'static str,
    isolation: Option<Isolation>,
    read_only: bool,
    rules: Rules,
    command: C,
}

/// A transaction that runs each time it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct WithoutCommand;

/// A transaction that runs once for each command id.
pub struct WithCommand {
    id: String,
    fingerprint: Result<Option<String>, CommandError>,
}

impl<Db: Database> RetryingTransaction<Db> {
    pub(crate) fn new(transactions: Transactions<Db>, operation: &'static str) -> Self {
        Self {
            transactions,
            operation,
            isolation: None,
            read_only: false,
            rules: Rules {
                policy: TxRetry::interactive(),
                deadline: None,
                cancel: None,
                correlation_id: None,
            },
            command: WithoutCommand,
        }
    }

    /// Makes it a command: its result is stored in its own transaction under this id, and whoever
    /// comes with the same id again gets that result, and the closure does not run. Of two at the
    /// same time the second waits. So it can be repeated after anything, also when nobody knows
    /// whether it was committed.
    ///
    /// An error of the closure is not stored: nothing is. To have a "no" remembered, return it as
    /// the result. The id appears in the log lines of retries; make it one that says nothing of a
    /// person. Ids are kept apart by operation, and kept for seven days unless
    /// [`OutboxBuilder::command_retention`](crate::outbox::OutboxBuilder::command_retention) says
    /// otherwise.
    pub fn command_id(self, id: impl fmt::Display) -> RetryingTransaction<Db, WithCommand> {
        RetryingTransaction {
            transactions: self.transactions,
            operation: self.operation,
            isolation: self.isolation,
            read_only: self.read_only,
            rules: self.rules,
            command: WithCommand {
                id: id.to_string(),
                fingerprint: Ok(None),
            },
        }
    }

    /// Runs the closure in a transaction and commits; as often as the policy and the deadline
    /// allow, each time from the beginning and in a new transaction.
    ///
    /// **The closure may run more than once.** An error of it is an answer, not a failure, and
    /// ends the run; unless it is a database error that the policy retries, or was caused by one.
    /// If the future is dropped, the transaction is rolled back.
    ///
    /// # Errors
    /// What the closure returned, or what failed, and why there was no further attempt.
    pub async fn run<T, E, Kind, F, Fut>(self, closure: F) -> Result<T, TransactionError<E>>
    where
        F: FnMut(Tx<Db>) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send,
        E: ClosureError<Kind>,
    {
        let plan = Plan {
            pool: &self.transactions.pool,
            names: &self.transactions.names,
            operation: self.operation,
            isolation: self.isolation,
            read_only: self.read_only,
            command: None,
        };
        self.transactions.attempts(plan, self.rules, closure).await
    }
}

impl<Db: Database> RetryingTransaction<Db, WithCommand> {
    /// What is asked for. A fingerprint of it is kept with the result, so that an id that comes
    /// with a different request is an error and not the wrong answer.
    pub fn request(mut self, request: &impl Serialize) -> Self {
        self.command.fingerprint = fingerprint(request).map(Some);
        self
    }

    /// As [`run`](RetryingTransaction::run) without a command, but once for each id: the result
    /// of the first that was committed is everybody's.
    ///
    /// # Errors
    /// As there; and when the id belongs to a different request, or the result cannot be stored
    /// or read.
    pub async fn run<T, E, Kind, F, Fut>(self, closure: F) -> Result<T, TransactionError<E>>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Tx<Db>) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send,
        E: ClosureError<Kind>,
    {
        let command = self.command.fingerprint.and_then(|fingerprint| {
            let command = Command {
                id: self.command.id,
                fingerprint,
            };
            command.check()?;
            if self.read_only {
                return Err(CommandError::ReadOnly);
            }
            Ok(command)
        });
        let command = command.map_err(|error| TransactionError {
            operation: self.operation,
            attempts: 0,
            stopped: Stopped::NotRetryable,
            reason: Reason::Command,
            unknown: false,
            cause: Cause::Command(error),
            as_error: |error: &E| error.as_error(),
        })?;
        let plan = Plan {
            pool: &self.transactions.pool,
            names: &self.transactions.names,
            operation: self.operation,
            isolation: self.isolation,
            read_only: false,
            command: Some((&command, Codec::json())),
        };
        self.transactions.attempts(plan, self.rules, closure).await
    }
}

impl<Db: Database, C> RetryingTransaction<Db, C> {
    /// How much it sees of others; by default what the database says.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// It does not write. PostgreSQL and MySQL refuse a statement that does; SQLite undoes it.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Until when it is worth anything.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.rules.deadline = Some(deadline);
        self
    }

    /// What is retried, how often and when.
    pub fn policy(mut self, policy: TxRetry) -> Self {
        self.rules.policy = policy;
        self
    }

    /// Gives up when this is ready, such as at the end of the program: waiting ends, an attempt
    /// that is running is rolled back, and a commit that has begun is waited for. Dropping the
    /// future of `run` does the same without an answer.
    ///
    /// ```
    /// # async fn close(transactions: outbox::transaction::Transactions<sqlx::Sqlite>) {
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let transaction = transactions.transaction("CloseCase").cancel_on(async { let _ = stopped.await; });
    /// # drop((stop, transaction));
    /// # }
    /// ```
    pub fn cancel_on(mut self, cancel: impl Future<Output = ()> + Send + 'static) -> Self {
        let cancel: Cancel = Box::pin(cancel);
        self.rules.cancel = Some(cancel);
        self
    }

    /// Appears in the log lines of its retries.
    pub fn correlation_id(mut self, id: impl fmt::Display) -> Self {
        self.rules.correlation_id = Some(id.to_string());
        self
    }
}

impl<Db: Database, C> fmt::Debug for RetryingTransaction<Db, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingTransaction")
            .field("operation", &self.operation)
            .field("isolation", &self.isolation)
            .field("read_only", &self.read_only)
            .field("deadline", &self.rules.deadline)
            .field("policy", &self.rules.policy)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WithCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithCommand").finish_non_exhaustive()
    }
}
