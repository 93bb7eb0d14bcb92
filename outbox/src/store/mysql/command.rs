//! Commands and the inbox on MySQL. Ids are bytes: no collation takes two of them for the same.

use sqlx::{MySql, MySqlConnection};
use uuid::Uuid;

use super::places;
use crate::store::{CommandClaim, CommandKey, CommandSql, Retained, TableNames, trusted};

/// How many messages are written by one statement.
const MESSAGES: usize = 500;

impl CommandSql for MySql {
    async fn claim_command(
        connection: &mut MySqlConnection,
        names: &TableNames,
        command: CommandKey<'_>,
        fingerprint: Option<&str>,
    ) -> Result<CommandClaim, sqlx::Error> {
        let table = names.table("command", '`');
        // What `ignore` would hide besides a duplicate was checked before.
        let sql = trusted(format!(
            "insert ignore into {table} (operation, command_id, fingerprint, created_at) values (?, ?, ?, utc_timestamp(6))"
        ));
        let done = sqlx::query(sql)
            .bind(command.operation.as_bytes())
            .bind(command.id.as_bytes())
            .bind(fingerprint)
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() > 0 {
            return Ok(CommandClaim::New);
        }
        // Locking, so that it is read as it is now, and not as it was when the transaction began.
        let sql = trusted(format!(
            "select fingerprint, result from {table} where operation = ? and command_id = ? lock in share mode"
        ));
        let (fingerprint, result) = sqlx::query_as(sql)
            .bind(command.operation.as_bytes())
            .bind(command.id.as_bytes())
            .fetch_one(connection)
            .await?;
        Ok(CommandClaim::Done {
            fingerprint,
            result,
        })
    }

    async fn complete_command(
        connection: &mut MySqlConnection,
        names: &TableNames,
        command: CommandKey<'_>,
        result: &str,
    ) -> Result<(), sqlx::Error> {
        let table = names.table("command", '`');
        let sql = trusted(format!(
            "update {table} set result = ? where operation = ? and command_id = ?"
        ));
        sqlx::query(sql)
            .bind(result)
            .bind(command.operation.as_bytes())
            .bind(command.id.as_bytes())
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn receive(
        connection: &mut MySqlConnection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> Result<Vec<String>, sqlx::Error> {
        let table = names.table("inbox", '`');
        // Nothing says which rows `ignore` has left out: ours carry a number of their own.
        let receipt = Uuid::now_v7();
        let mut new = Vec::new();
        for messages in messages.chunks(MESSAGES) {
            let rows = vec!["(?, ?, ?, utc_timestamp(6))"; messages.len()].join(", ");
            let insert = trusted(format!(
                "insert ignore into {table} (source, message_id, receipt, created_at) values {rows}"
            ));
            let mut query = sqlx::query(insert);
            for message in messages {
                query = query
                    .bind(source.as_bytes())
                    .bind(message.as_bytes())
                    .bind(receipt);
            }
            query.execute(&mut *connection).await?;
            let select = trusted(format!(
                "select convert(message_id using utf8mb4) from {table} where source = ? and receipt = ? and message_id in ({})",
                places(messages.len())
            ));
            let mut query = sqlx::query_scalar(select)
                .bind(source.as_bytes())
                .bind(receipt);
            for message in messages {
                query = query.bind(message.as_bytes());
            }
            let found: Vec<String> = query.fetch_all(&mut *connection).await?;
            new.extend(found);
        }
        Ok(new)
    }

    async fn forget(
        connection: &mut MySqlConnection,
        names: &TableNames,
        what: Retained,
        micros: i64,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let table = names.table(what.table(), '`');
        let sql = trusted(format!(
            "delete from {table} where created_at <= utc_timestamp(6) - interval ? microsecond order by created_at limit ?"
        ));
        let done = sqlx::query(sql)
            .bind(micros)
            .bind(limit)
            .execute(connection)
            .await?;
        Ok(done.rows_affected())
    }
}
