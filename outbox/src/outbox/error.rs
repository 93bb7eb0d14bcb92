//! [`Error`]: what can go wrong with the stored outbox.

use crate::{config::ConfigError, record::EventError, registry::RegistryError};

/// What can go wrong with the stored outbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database refused, or could not be reached.
    #[error("the database failed while {doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What the database says.
        source: sqlx::Error,
    },
    /// The event cannot be published. Nothing was written; the transaction is as it was.
    #[error(transparent)]
    Event(#[from] EventError),
    /// Something is longer than allowed. Nothing was written; the transaction is as it was.
    #[error("{what} of event `{event}` has {actual} bytes, and {limit} are allowed{instead}")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// The name of the event.
        event: &'static str,
        /// Its length.
        actual: usize,
        /// The limit.
        limit: usize,
        /// What to do.
        instead: &'static str,
    },
    /// A character that no database stores in text. Nothing was written.
    #[error("{what} of event `{event}` contains the character NUL, which cannot be stored")]
    Nul {
        /// Where it is.
        what: &'static str,
        /// The name of the event.
        event: &'static str,
    },
    /// A message that the inbox cannot note. Nothing was written.
    #[error("{what} has 1 to 255 bytes and no NUL, and this one has {bytes} bytes")]
    BadMessage {
        /// What it is.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The handlers cannot be started.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A dispatcher without handlers would own records and handle none.
    #[error(
        "there is no handler to dispatch to: register one, or do not start a dispatcher in a process that only publishes"
    )]
    NothingToDispatch,
    /// A dispatcher of this outbox runs in this process already.
    #[error("a dispatcher of this outbox runs already: keep it, or shut it down first")]
    AlreadyRunning,
    /// The dispatcher panicked; nothing is lost, what it had is delivered after the next start.
    #[error("the dispatcher panicked: please report it with what its thread printed")]
    DispatcherPanicked,
    /// A table prefix or schema that is no plain identifier.
    #[error(
        "`{name}` cannot be {what}: use 1 to 30 of the characters a-z, A-Z, 0-9 and _, not starting with a digit"
    )]
    BadName {
        /// What it should be.
        what: &'static str,
        /// As given.
        name: String,
    },
    /// The tables are those of a newer version of this library.
    #[error(
        "the outbox tables have schema version {found}, and this program knows {known}: a newer version has been here; deploy that one"
    )]
    NewerSchema {
        /// The version of the tables.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The test kit could not go on.
    #[cfg(feature = "testing")]
    #[error(transparent)]
    Testing(#[from] crate::testing::KitError),
}

/// A result of the stored outbox.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what was being done when the database failed.
pub(crate) trait While<T> {
    fn doing(self, doing: &'static str) -> Result<T>;
}

impl<T> While<T> for std::result::Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T> {
        self.map_err(|source| Error::Database { doing, source })
    }
}
