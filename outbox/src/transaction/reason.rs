//! [`Reason`]: what a failure of a transaction means, on every database.

use std::{error::Error, io};

use sqlx::error::DatabaseError;

use crate::{outbox::named::named, store::Database};

named! {
    /// Why an attempt failed. [`as_str`](Self::as_str) is the value in log lines and metric labels. The
    /// [policy](super::TxRetry) says which reasons are retried. The defaults:
    ///
    /// | | `interactive` | `background`, `publish` |
    /// |---|---|---|
    /// | deadlock, serialization failure, SQLite busy | yes | yes |
    /// | connection lost before the commit, lock timeout, attempt timeout | no | yes |
    /// | connection lost during the commit | with a command id | with a command id |
    /// | everything else | no | no |
    ///
    /// ```
    /// use outbox::transaction::Reason;
    ///
    /// assert_eq!(Reason::of::<sqlx::Sqlite>(&sqlx::Error::PoolTimedOut), Reason::PoolTimeout);
    /// assert_eq!(Reason::SerializationFailure.to_string(), "serialization_failure");
    /// ```
    Reason {
        /// Two transactions waited for each other, and the database ended this one.
        Deadlock = "deadlock",
        /// Another transaction changed rows that this one has read. Expected with
        /// [`Isolation::Serializable`](super::Isolation::Serializable).
        SerializationFailure = "serialization_failure",
        /// SQLite: another connection wrote for longer than the busy timeout.
        Busy = "busy",
        /// A lock was not free in time, or not at once with `nowait`.
        LockTimeout = "lock_timeout",
        /// The connection was lost or could not be opened. Nothing was committed.
        ConnectionLost = "connection_lost",
        /// The connection was lost during the commit. The transaction may have been committed.
        CommitUnknown = "commit_unknown",
        /// A statement took too long or was cancelled.
        StatementTimeout = "statement_timeout",
        /// The attempt took longer than [`TxRetry::attempt_timeout`](super::TxRetry::attempt_timeout).
        /// The library ended its running statement on the server and rolled back.
        AttemptTimeout = "attempt_timeout",
        /// The pool had no connection in time: it is too small, or the database is unreachable.
        PoolTimeout = "pool_timeout",
        /// A row with this unique key exists.
        UniqueViolation = "unique_violation",
        /// A referenced row is missing, or a referenced row was to be deleted.
        ForeignKeyViolation = "foreign_key_violation",
        /// A `check` constraint failed.
        CheckViolation = "check_violation",
        /// A column without a default got no value.
        NotNullViolation = "not_null_violation",
        /// The statement has a syntax error.
        SyntaxError = "syntax_error",
        /// A table, column or function does not exist. Has the migration run?
        MissingObject = "missing_object",
        /// The database user lacks a permission.
        PermissionDenied = "permission_denied",
        /// A statement failed and ended the transaction, and the closure continued without returning
        /// an error.
        Aborted = "aborted",
        /// The closure returned an error that contains no database error.
        Rejected = "rejected",
        /// A temporary failure, as [`TxRetry::classify`](super::TxRetry::classify) says.
        Transient = "transient",
        /// The command cannot run under this id; see [`CommandError`](super::CommandError).
        Command = "command",
        /// The deadline passed during the attempt, or left too little time for one.
        Deadline = "deadline",
        /// The caller cancelled the run.
        Cancelled = "cancelled",
        /// The database was unreachable, and the next probe is not due.
        CircuitOpen = "circuit_open",
        /// Any other failure.
        Other = "other",
    }
}

impl Reason {
    /// The meaning of an error of this database, by its SQLSTATE or vendor code.
    #[must_use]
    pub fn of<Db: Database>(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(error) => Db::reason(&**error),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed => Self::ConnectionLost,
            sqlx::Error::PoolTimedOut => Self::PoolTimeout,
            _ => Self::Other,
        }
    }

    /// Whether a commit that failed like this may have happened.
    pub(super) fn leaves_commit_unknown(self) -> bool {
        matches!(self, Self::ConnectionLost | Self::StatementTimeout)
    }

    /// Whether the database ended this transaction in favour of another one. The same transaction may
    /// succeed when it is made again.
    pub(crate) fn is_conflict(self) -> bool {
        matches!(
            self,
            Self::Deadlock | Self::SerializationFailure | Self::Busy
        )
    }

    /// Whether the database could not be reached.
    pub(super) fn is_unreachable(self) -> bool {
        matches!(
            self,
            Self::ConnectionLost | Self::CommitUnknown | Self::PoolTimeout
        )
    }
}

/// The meaning of the first database error among an error and its sources.
pub(super) fn reason_in<Db: Database>(error: &(dyn Error + 'static)) -> Option<Reason> {
    chain(error).find_map(|error| {
        if let Some(error) = error.downcast_ref() {
            return Some(Reason::of::<Db>(error));
        }
        // A transparent wrapper hides the `sqlx::Error` itself, but not its source.
        let source = error.downcast_ref::<Box<dyn DatabaseError>>();
        source.map(|error| Db::reason(&**error))
    })
}

/// Whether an error or one of its sources is an I/O error, of any connection.
pub(super) fn has_io_error(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| error.is::<io::Error>())
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // The `source` of an `io::Error` skips the error inside.
        match error.downcast_ref::<io::Error>() {
            Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Box<dyn Error + Send + Sync>);

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_database_error_is_found_however_deep() {
        let found = |error: &(dyn Error + 'static)| {
            reason_in::<sqlx::Sqlite>(error) == Some(Reason::PoolTimeout)
        };
        assert!(found(&sqlx::Error::PoolTimedOut));
        assert!(found(&Outer(sqlx::Error::PoolTimedOut.into())));
        assert!(found(&Outer(
            io::Error::other(Outer(sqlx::Error::PoolTimedOut.into())).into()
        )));
        assert!(found(&crate::outbox::Error::Database {
            operation: crate::outbox::error::Operation::Publish,
            source: sqlx::Error::PoolTimedOut
        }));
        let context = anyhow::Error::from(sqlx::Error::PoolTimedOut).context("more");
        assert!(found(context.as_ref()));
        assert!(!found(&std::fmt::Error));
    }

    #[test]
    fn an_io_error_is_found_in_a_transparent_one() {
        #[derive(Debug, thiserror::Error)]
        #[error(transparent)]
        struct Transparent(sqlx::Error);

        let lost = || io::Error::from(io::ErrorKind::UnexpectedEof);
        assert!(has_io_error(&Transparent(lost().into())));
        assert!(has_io_error(&Outer(lost().into())));
        assert!(!has_io_error(&Transparent(sqlx::Error::RowNotFound)));
    }

    #[test]
    fn only_a_lost_connection_leaves_a_commit_unknown() {
        assert!(Reason::ConnectionLost.leaves_commit_unknown());
        for definite in [
            Reason::SerializationFailure,
            Reason::UniqueViolation,
            Reason::Busy,
        ] {
            assert!(!definite.leaves_commit_unknown());
        }
    }
}
