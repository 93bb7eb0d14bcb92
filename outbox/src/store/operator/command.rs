//! The statements on commands with their results and on received messages. All of them but
//! [`prune_retained`](Operator::prune_retained) run in the transaction of the caller.

use super::Operator;
use crate::store::{
    columns::Cells as _,
    dialect::{Dialect, Statement},
};

/// A command as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandKey<'a> {
    pub(crate) operation: &'a str,
    pub(crate) id: &'a str,
}

/// The result of claiming a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandClaim {
    /// The command is new. Other transactions with the same command wait until this one ends.
    New,
    /// The command ran before.
    Done {
        fingerprint: Option<String>,
        /// As JSON.
        result: Option<String>,
    },
}

/// The kind of rows that are kept until they are pruned.
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

impl<Db: Dialect> Operator<'_, Db> {
    /// Claims a command. Waits while another transaction has claimed it.
    pub(crate) async fn claim_command(
        &mut self,
        command: CommandKey<'_>,
        fingerprint: Option<&str>,
    ) -> Result<CommandClaim, sqlx::Error> {
        let (table, now) = (self.table("command"), Db::WORDS.now);
        let ((insert, if_new), latest) = (Db::WORDS.insert_new, Db::WORDS.read_latest);
        let insert = format!(
            "{insert} into {table} (operation, command_id, fingerprint, created_at) values (?, ?, ?, {now}){if_new}"
        );
        let select = format!(
            "select fingerprint, result from {table} where operation = ? and command_id = ?{latest}"
        );
        let keyed = |sql: &str| Statement::new(sql).key(command.operation).key(command.id);
        loop {
            let statement = keyed(&insert).bind(fingerprint);
            if self.execute(statement).await? > 0 {
                return Ok(CommandClaim::New);
            }
            let found = self.first(keyed(&select), |row| {
                Ok(CommandClaim::Done {
                    fingerprint: row.optional_string(0)?,
                    result: row.optional_string(1)?,
                })
            });
            // `None`: the command was pruned between the two statements.
            if let Some(done) = found.await? {
                return Ok(done);
            }
        }
    }

    /// Stores the result of a command that this transaction claimed.
    pub(crate) async fn complete_command(
        &mut self,
        command: CommandKey<'_>,
        result: &str,
    ) -> Result<(), sqlx::Error> {
        let table = self.table("command");
        let sql = format!("update {table} set result = ? where operation = ? and command_id = ?");
        let statement = Statement::new(sql).bind(result);
        let statement = statement.key(command.operation).key(command.id);
        self.execute(statement).await?;
        Ok(())
    }

    /// Deletes up to `limit` commands, or messages, that are older than `micros` microseconds.
    /// Returns how many.
    pub(crate) async fn prune_retained(
        &mut self,
        kind: Retained,
        micros: i64,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let sql = Db::prune_retained(self.names, kind);
        self.execute(Statement::new(sql).bind(micros).bind(limit))
            .await
    }
}
