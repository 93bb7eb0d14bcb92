//! Commands and the inbox on SQLite.

use sqlx::{Sqlite, SqliteConnection};

use super::NOW;
use crate::store::{
    CommandClaim, CommandKey, CommandSql, Retained, TableNames, settle::json, trusted,
};

impl CommandSql for Sqlite {
    async fn claim_command(
        connection: &mut SqliteConnection,
        names: &TableNames,
        command: CommandKey<'_>,
        fingerprint: Option<&str>,
    ) -> Result<CommandClaim, sqlx::Error> {
        let table = names.table("command", '"');
        let sql = trusted(format!(
            "insert into {table} (operation, command_id, fingerprint) values (?1, ?2, ?3) on conflict do nothing"
        ));
        let done = sqlx::query(sql)
            .bind(command.operation)
            .bind(command.id)
            .bind(fingerprint)
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() > 0 {
            return Ok(CommandClaim::New);
        }
        let sql = trusted(format!(
            "select fingerprint, result from {table} where operation = ?1 and command_id = ?2"
        ));
        let (fingerprint, result) = sqlx::query_as(sql)
            .bind(command.operation)
            .bind(command.id)
            .fetch_one(connection)
            .await?;
        Ok(CommandClaim::Done {
            fingerprint,
            result,
        })
    }

    async fn complete_command(
        connection: &mut SqliteConnection,
        names: &TableNames,
        command: CommandKey<'_>,
        result: &str,
    ) -> Result<(), sqlx::Error> {
        let table = names.table("command", '"');
        let sql = trusted(format!(
            "update {table} set result = ?3 where operation = ?1 and command_id = ?2"
        ));
        sqlx::query(sql)
            .bind(command.operation)
            .bind(command.id)
            .bind(result)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn receive(
        connection: &mut SqliteConnection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> Result<Vec<String>, sqlx::Error> {
        let table = names.table("inbox", '"');
        let sql = trusted(format!(
            "insert into {table} (source, message_id) select ?1, value from json_each(?2) where true
on conflict do nothing returning message_id"
        ));
        sqlx::query_scalar(sql)
            .bind(source)
            .bind(json(messages)?)
            .fetch_all(connection)
            .await
    }

    async fn forget(
        connection: &mut SqliteConnection,
        names: &TableNames,
        what: Retained,
        micros: i64,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let table = names.table(what.table(), '"');
        let sql = trusted(format!(
            "delete from {table} where rowid in (
    select rowid from {table} where created_at <= {NOW} - ?1 order by created_at limit ?2
)"
        ));
        let done = sqlx::query(sql)
            .bind(micros)
            .bind(limit)
            .execute(connection)
            .await?;
        Ok(done.rows_affected())
    }
}
