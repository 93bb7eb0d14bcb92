//! [`Isolation`]: which changes of other transactions a transaction sees.

use std::fmt;

/// Which changes of other transactions a transaction sees. On SQLite every transaction is
/// serializable.
///
/// ```
/// use outbox::transaction::Isolation;
///
/// assert_eq!(Isolation::RepeatableRead.to_string(), "repeatable read");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Each statement sees the transactions that were committed before the statement began.
    ReadCommitted,
    /// Each statement sees the transactions that were committed before the first statement.
    RepeatableRead,
    /// As if the transactions ran one after the other. Expect serialization failures and deadlocks.
    Serializable,
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        })
    }
}
