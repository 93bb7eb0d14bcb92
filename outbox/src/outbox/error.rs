//! [`Error`]: everything that can fail on a stored outbox.

use super::named::named;
use crate::{
    config::ConfigError, operations::RestoreError, record::EventError, registry::RegistryError,
};

/// An error of a stored outbox.
///
/// The text never repeats the text of [`source`](std::error::Error::source): print the whole chain,
/// for example with `anyhow`'s `{:#}`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database returned an error, or could not be reached.
    #[error("database error during operation `{operation}`")]
    Database {
        /// The operation that failed.
        operation: Operation,
        /// The error of the database driver.
        source: sqlx::Error,
    },
    /// The event cannot be published. Nothing was written, and the transaction is still usable.
    #[error(transparent)]
    Event(#[from] EventError),
    /// A part of the event is too long. Nothing was written, and the transaction is still usable.
    #[error(
        "the {field} of event `{event}` {} too long ({actual} bytes, limit {limit}); {}",
        .field.verb(),
        .field.advice()
    )]
    TooLong {
        /// The part that is too long.
        field: Field,
        /// The name of the event.
        event: String,
        /// The length in bytes.
        actual: usize,
        /// The greatest allowed length in bytes.
        limit: usize,
    },
    /// A text contains NUL, which the databases cannot store. Nothing was written.
    #[error("the {field} of event `{event}` contains the character NUL, which cannot be stored")]
    Nul {
        /// The part that contains it.
        field: Field,
        /// The name of the event.
        event: String,
    },
    /// The inbox cannot store this source or message id. Nothing was written.
    #[error("the {field} must have 1 to 255 bytes and no NUL character; it has {bytes} bytes")]
    BadMessage {
        /// The part that cannot be stored.
        field: MessageField,
        /// The length in bytes.
        bytes: usize,
    },
    /// The handlers cannot be started.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No handler is registered. Such a dispatcher would own records and handle none of them.
    #[error(
        "no handler is registered; register one, or start no dispatcher in a process that only publishes"
    )]
    NothingToDispatch,
    /// The tables have no partitions.
    #[error(
        "the tables {tables} have no partitions; run `migrate`, or all statements of `schema_sql`"
    )]
    NoPartitions {
        /// The names of the tables.
        tables: String,
    },
    /// A dispatcher of this outbox already runs in this process.
    #[error("a dispatcher of this outbox is already running; keep it, or shut it down first")]
    AlreadyRunning,
    /// The dispatcher panicked. No record is lost: the next dispatcher delivers the unfinished ones.
    #[error("the dispatcher panicked; this is a bug, please report it with the panic message")]
    DispatcherPanicked,
    /// The table prefix or the schema is not a plain identifier.
    #[error(
        "`{name}` is not a valid {kind}; use 1 to 30 of the characters a-z, A-Z, 0-9 and _, not starting with a digit"
    )]
    BadName {
        /// The setting that has this value.
        kind: NameKind,
        /// The value.
        name: String,
    },
    /// A newer version of this library has migrated the tables.
    #[error(
        "the outbox tables have schema version {found}, and this program supports versions up to {known}; deploy the newer program"
    )]
    NewerSchema {
        /// The version of the tables.
        found: i64,
        /// The newest version that this program supports.
        known: i64,
    },
    /// A record cannot be restored. Nothing was changed.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The test kit could not continue.
    #[cfg(feature = "testing")]
    #[error(transparent)]
    Testing(#[from] crate::testing::KitError),
}

/// A result of a stored outbox.
pub type Result<T, E = Error> = std::result::Result<T, E>;

named! {
    /// What the library did when the database failed. [`as_str`](Self::as_str) is a stable
    /// identifier: it is also the label `operation` of the metric `outbox_database_errors_total` and
    /// the field `operation` of log lines.
    ///
    /// ```
    /// use outbox::error::Operation;
    ///
    /// assert_eq!(Operation::HandOver.to_string(), "hand_over");
    /// ```
    Operation {
        /// An event was published.
        Publish = "publish",
        /// The inbox stored message ids.
        Receive = "receive",
        /// The tables were created or updated.
        Migrate = "migrate",
        /// The version of the tables was read.
        SchemaVersion = "schema_version",
        /// The dispatcher claimed or renewed leases.
        Claim = "claim",
        /// The dispatcher released its leases at shutdown.
        HandOver = "hand_over",
        /// The dispatcher read records and deliveries.
        Fetch = "fetch",
        /// The dispatcher wrote a batch.
        Settle = "settle",
        /// The dispatcher looked for changes by other processes.
        Watch = "watch",
        /// The dispatcher read the values of the gauges.
        Sample = "sample",
        /// Finished records, commands or messages were removed.
        Prune = "prune",
        /// Records and deliveries were counted.
        Count = "count",
        /// The overview of all records was read.
        Overview = "overview",
        /// Records, lanes, instances or paused handlers were listed.
        List = "list",
        /// One record was read.
        Inspect = "inspect",
        /// Records or deliveries were made due now.
        Replay = "replay",
        /// Records or deliveries were discarded.
        Discard = "discard",
        /// An exported record was put back.
        Restore = "restore",
        /// A handler was paused.
        Pause = "pause",
        /// A paused handler was resumed.
        Resume = "resume",
        /// The test kit ran handlers.
        TestKit = "test_kit",
    }
}

named! {
    /// A part of a published event.
    Field {
        /// The event as JSON text.
        Payload = "payload",
        /// All headers together.
        Headers = "headers",
        /// The key.
        Key = "key",
        /// The dedup key.
        DedupKey = "dedup key",
    }
}

impl Field {
    const fn verb(self) -> &'static str {
        match self {
            Self::Headers => "are",
            Self::Payload | Self::Key | Self::DedupKey => "is",
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::Payload => {
                "publish a reference to the data instead, or raise `Limits::payload_bytes`"
            }
            Self::Headers => "shorten them, or raise `Limits::header_bytes`",
            Self::Key | Self::DedupKey => "use a hash instead",
        }
    }
}

named! {
    /// A part of a message that the [inbox](crate::Outbox::inbox) stores.
    MessageField {
        /// The source of the message.
        Source = "source",
        /// The id of the message.
        Id = "message id",
    }
}

named! {
    /// A setting that becomes part of table names.
    NameKind {
        /// [`OutboxBuilder::schema`](crate::OutboxBuilder::schema).
        Schema = "schema",
        /// [`OutboxBuilder::table_prefix`](crate::OutboxBuilder::table_prefix).
        TablePrefix = "table prefix",
    }
}

/// Adds the operation to an error of the database driver.
pub(crate) trait DbContext<T> {
    fn during(self, operation: Operation) -> Result<T>;
}

impl<T> DbContext<T> for std::result::Result<T, sqlx::Error> {
    fn during(self, operation: Operation) -> Result<T> {
        self.map_err(|source| Error::Database { operation, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_what_is_too_long_and_what_to_do() {
        let too_long = |field| Error::TooLong {
            field,
            event: "x".to_owned(),
            actual: 300,
            limit: 255,
        };
        assert_eq!(
            too_long(Field::Key).to_string(),
            "the key of event `x` is too long (300 bytes, limit 255); use a hash instead"
        );
        assert_eq!(
            too_long(Field::Headers).to_string(),
            "the headers of event `x` are too long (300 bytes, limit 255); shorten them, or raise `Limits::header_bytes`"
        );
    }

    #[test]
    fn the_text_of_the_driver_is_the_source_only() {
        let error = Err::<(), _>(sqlx::Error::PoolTimedOut)
            .during(Operation::HandOver)
            .map_err(anyhow::Error::from)
            .unwrap_err();
        let source = sqlx::Error::PoolTimedOut;
        assert_eq!(
            format!("{error:#}"),
            format!("database error during operation `hand_over`: {source}")
        );
    }
}
