//! What a failure of a transaction means, whatever database it comes from.

use std::{error::Error, fmt, io};

use sqlx::error::DatabaseError;

use crate::store::Database;

/// Why an attempt failed. What is retried is the [policy](super::TxRetry)'s choice; by default:
///
/// | | `interactive` | `background`, `publish` |
/// |---|---|---|
/// | deadlock, serialization failure, SQLite busy | yes | yes |
/// | connection lost before the commit, lock timeout | no | yes |
/// | connection lost during the commit | with a command id | with a command id |
/// | everything else | no | no |
///
/// ```
/// use outbox::transaction::Reason;
///
/// assert_eq!(Reason::of::<sqlx::Sqlite>(&sqlx::Error::PoolTimedOut), Reason::PoolTimeout);
/// assert_eq!(Reason::SerializationFailure.to_string(), "serialization_failure");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Two transactions waited for each other, and the database chose this one to give up.
    Deadlock,
    /// What was read has changed meanwhile; expected where transactions are serializable.
    SerializationFailure,
    /// SQLite: another connection was writing for longer than the busy timeout.
    Busy,
    /// A lock was not free in time, or not at once where that was asked for.
    LockTimeout,
    /// The connection was lost, or could not be made. Nothing was committed.
    ConnectionLost,
    /// The connection was lost while the database was committing: it has, or it has not.
    CommitUnknown,
    /// A statement took too long, or somebody stopped it.
    StatementTimeout,
    /// No connection was free in time: there are too few, or the database is not there.
    PoolTimeout,
    /// There is such a row already.
    UniqueViolation,
    /// A row that is referred to is not there, or one that is referred to was to go.
    ForeignKeyViolation,
    /// A `check` says no.
    CheckViolation,
    /// A value is missing.
    NotNullViolation,
    /// The statement is wrong.
    SyntaxError,
    /// A table, column or function is not there; has the migration run?
    MissingObject,
    /// The database's user may not do this.
    PermissionDenied,
    /// A statement failed in a way that ended the transaction, and the closure went on as if it
    /// had not.
    Aborted,
    /// The closure said no, and there is no database error in what it said.
    Rejected,
    /// The caller's own classification says that it will pass; always retried.
    Transient,
    /// The command cannot be carried out under this id.
    Command,
    /// The deadline passed while the attempt was running, or there was no time for one.
    Deadline,
    /// The caller gave up.
    Cancelled,
    /// The database was unreachable lately, and nobody tries before the next probe.
    CircuitOpen,
    /// Anything else.
    Other,
}

impl Reason {
    /// What an error of this database means, by its SQLSTATE or vendor code.
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

    /// The same at the moment of the commit, when a lost connection leaves the outcome open.
    #[must_use]
    pub(crate) fn during_commit(self) -> Self {
        match self {
            Self::ConnectionLost | Self::StatementTimeout => Self::CommitUnknown,
            reason => reason,
        }
    }

    /// Whether it says that the database cannot be reached.
    pub(crate) fn is_unreachable(self) -> bool {
        matches!(
            self,
            Self::ConnectionLost | Self::CommitUnknown | Self::PoolTimeout
        )
    }

    /// For logs and metric labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::SerializationFailure => "serialization_failure",
            Self::Busy => "busy",
            Self::LockTimeout => "lock_timeout",
            Self::ConnectionLost => "connection_lost",
            Self::CommitUnknown => "commit_unknown",
            Self::StatementTimeout => "statement_timeout",
            Self::PoolTimeout => "pool_timeout",
            Self::UniqueViolation => "unique_violation",
            Self::ForeignKeyViolation => "foreign_key_violation",
            Self::CheckViolation => "check_violation",
            Self::NotNullViolation => "not_null_violation",
            Self::SyntaxError => "syntax_error",
            Self::MissingObject => "missing_object",
            Self::PermissionDenied => "permission_denied",
            Self::Aborted => "aborted",
            Self::Rejected => "rejected",
            Self::Transient => "transient",
            Self::Command => "command",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::CircuitOpen => "circuit_open",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an error means: by the first database error among it and everything it was caused by.
pub(crate) fn reason_in<Db: Database>(error: &(dyn Error + 'static)) -> Option<Reason> {
    chain(error).find_map(|error| {
        // A transparent error is not seen itself, only what it was caused by: of a database error
        // that is what the server said.
        let said = || error.downcast_ref::<Box<dyn DatabaseError>>();
        match error.downcast_ref() {
            Some(error) => Some(Reason::of::<Db>(error)),
            None => said().map(|error| Db::reason(&**error)),
        }
    })
}

/// Whether the error of a connection is in it, of whatever connection.
pub(crate) fn has_io(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| error.is::<io::Error>())
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An `io::Error` is transparent: its `source` is that of the error inside, which it skips.
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
            doing: "publishing",
            source: sqlx::Error::PoolTimedOut
        }));
        let context = anyhow::Error::from(sqlx::Error::PoolTimedOut).context("more");
        assert!(found(context.as_ref()));
        assert!(!found(&fmt::Error));
    }

    #[test]
    fn an_error_of_a_connection_is_seen_through_a_transparent_one() {
        #[derive(Debug, thiserror::Error)]
        #[error(transparent)]
        struct Transparent(sqlx::Error);

        let lost = || io::Error::from(io::ErrorKind::UnexpectedEof);
        assert!(has_io(&Transparent(lost().into())));
        assert!(has_io(&Outer(lost().into())));
        assert!(!has_io(&Transparent(sqlx::Error::RowNotFound)));
    }

    #[test]
    fn only_a_lost_connection_leaves_a_commit_open() {
        assert_eq!(
            Reason::ConnectionLost.during_commit(),
            Reason::CommitUnknown
        );
        for definite in [
            Reason::SerializationFailure,
            Reason::UniqueViolation,
            Reason::Busy,
        ] {
            assert_eq!(definite.during_commit(), definite);
        }
    }
}
