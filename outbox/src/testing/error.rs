//! [`KitError`]: why the test kit cannot do what a test asks.

use crate::{
    outbox::{Error, error::Operation},
    retry::NoHandler,
};

/// Why a [`Kit`](super::Kit) cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KitError {
    /// A transaction of the test has written and is still open. SQLite has one writer at a time.
    #[error(
        "the test kit cannot write while a transaction of the test is open: commit it, roll it back or drop it first"
    )]
    TransactionOpen {
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The kit made [too many](super::Kit::max_invocations) invocations while its clock stood still.
    #[error(
        "the test kit has made {steps} invocations without time passing, the last one of `{handler}`: does a handler publish what it handles, or retry without a delay?"
    )]
    Endless {
        /// The number of invocations.
        steps: usize,
        /// The handler of the last one.
        handler: String,
    },
    /// A dispatcher runs on the kit's database.
    #[error("a dispatcher runs on the test kit's outbox: shut it down first")]
    DispatcherRuns,
    /// There is no record with this id.
    #[error("there is no record with id {0}")]
    NoSuchRecord(i64),
    /// The kit has no handler with this id that takes the record.
    #[error(transparent)]
    NoHandler(#[from] NoHandler),
    /// The folder for the database could not be created.
    #[error("the test kit cannot create a folder for its database")]
    Folder {
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// Converts an error of the database while the kit runs.
pub(super) fn database(source: sqlx::Error) -> Error {
    // 5 is `SQLITE_BUSY`, 6 is `SQLITE_LOCKED`. The higher bits hold an extended code.
    let code = source.as_database_error().and_then(|error| error.code());
    let code = code.and_then(|code| code.parse::<u32>().ok());
    let is_busy = matches!(code.map(|code| code & 0xff), Some(5 | 6));
    if is_busy || matches!(source, sqlx::Error::PoolTimedOut) {
        return KitError::TransactionOpen { source }.into();
    }
    Error::Database {
        operation: Operation::TestKit,
        source,
    }
}
