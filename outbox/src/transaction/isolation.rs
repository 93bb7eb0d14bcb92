//! [`Isolation`]: which changes of other transactions a transaction sees.

use crate::outbox::named::named;

named! {
    /// Which changes of other transactions a transaction sees. On SQLite every transaction is
    /// serializable.
    ///
    /// ```
    /// use outbox::transaction::Isolation;
    ///
    /// assert_eq!(Isolation::RepeatableRead.to_string(), "repeatable read");
    /// ```
    Isolation {
        /// Each statement sees the transactions that were committed before the statement began.
        ReadCommitted = "read committed",
        /// Each statement sees the transactions that were committed before the first statement.
        RepeatableRead = "repeatable read",
        /// As if the transactions ran one after the other. Expect serialization failures and deadlocks.
        Serializable = "serializable",
    }
}
