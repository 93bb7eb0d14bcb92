//! [`Isolation`].

use std::fmt;

/// How much a transaction sees of others. On SQLite each is serializable, whatever is asked for.
///
/// ```
/// use outbox::transaction::Isolation;
///
/// assert_eq!(Isolation::RepeatableRead.to_string(), "repeatable read");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    ReadCommitted,
    /// The transaction sees what was committed before it began.
    RepeatableRead,
    /// As if one transaction ran after the other; expect serialization failures and deadlocks.
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
