//! What was done before: commands with their results, messages that arrived.

use super::TableNames;

/// A command as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct CommandKey<'a> {
    pub(crate) operation: &'a str,
    pub(crate) id: &'a str,
}

/// What was found under a command's id.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandClaim {
    /// Nothing: it is ours until the transaction ends, and others wait for that.
    New,
    /// It was done before.
    Done {
        fingerprint: Option<String>,
        /// As JSON.
        result: Option<String>,
    },
}

/// The statements of commands and of the inbox. All of them in the caller's transaction, except
/// those that forget.
pub trait CommandSql: sqlx::Database {
    /// Waits for another transaction that has the same command.
    #[doc(hidden)]
    fn claim_command(
        connection: &mut Self::Connection,
        names: &TableNames,
        command: CommandKey<'_>,
        fingerprint: Option<&str>,
    ) -> impl Future<Output = Result<CommandClaim, sqlx::Error>> + Send;

    /// Keeps the result of a command that was claimed in this transaction.
    #[doc(hidden)]
    fn complete_command(
        connection: &mut Self::Connection,
        names: &TableNames,
        command: CommandKey<'_>,
        result: &str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Those of these messages that were not there. They are sorted and differ.
    #[doc(hidden)]
    fn receive(
        connection: &mut Self::Connection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;

    /// Deletes up to `limit` commands, or messages, that are older than this. How many.
    #[doc(hidden)]
    fn forget(
        connection: &mut Self::Connection,
        names: &TableNames,
        what: Retained,
        micros: i64,
        limit: i64,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;
}

/// Which of the two is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retained {
    Commands,
    Messages,
}

impl Retained {
    /// The name of the table, without its prefix.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Commands => "command",
            Self::Messages => "inbox",
        }
    }
}
