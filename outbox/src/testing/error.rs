//! [`KitError`]: how a test kit can be used wrongly.

use crate::outbox::error::Operation;
use crate::{outbox::Error, retry::NoHandler};

/// Why a [`Kit`](super::Kit) could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KitError {
    /// A transaction of the test has written and has not ended; SQLite has one writer at a time.
    #[error(
        "the test kit cannot write while a transaction of the test is open: commit it, roll it back or drop it first"
    )]
    TransactionOpen {
        /// What the database says.
        source: sqlx::Error,
    },
    /// No end in sight at one moment of the kit's clock.
    #[error(
        "the test kit has made {steps} invocations without time passing, the last one of `{handler}`: does a handler publish what it handles, or retry without a delay?"
    )]
    Endless {
        /// How many invocations there were.
        steps: usize,
        /// The handler of the last one.
        handler: String,
    },
    /// A dispatcher works on the kit's database.
    #[error("a dispatcher runs on the test kit's outbox: shut it down first")]
    DispatcherRuns,
    /// There is no record with this id.
    #[error("there is no record with id {0}")]
    NoSuchRecord(i64),
    /// No such handler takes the record.
    #[error(transparent)]
    NoHandler(#[from] NoHandler),
    /// The files of the database could not be made.
    #[error("the test kit cannot make a folder for its database")]
    Folder {
        /// What the operating system says.
        source: std::io::Error,
    },
}

/// What the database said while the kit ran.
pub(super) fn database(source: sqlx::Error) -> Error {
    // `SQLITE_BUSY` and `SQLITE_LOCKED`, whatever stands in the higher bits.
    let code = source.as_database_error().and_then(|error| error.code());
    let code = code.and_then(|code| code.parse::<u32>().ok());
    match code.map(|code| code & 0xff) {
        Some(5 | 6) => KitError::TransactionOpen { source }.into(),
        _ if matches!(source, sqlx::Error::PoolTimedOut) => {
            KitError::TransactionOpen { source }.into()
        }
        _ => Error::Database {
            operation: Operation::TestKit,
            source,
        },
    }
}
