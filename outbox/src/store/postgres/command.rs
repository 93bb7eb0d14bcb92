//! Commands and the inbox on PostgreSQL.

use sqlx::{PgConnection, Postgres};

use crate::store::{CommandClaim, CommandKey, CommandSql, Retained, TableNames, trusted};

impl CommandSql for Postgres {
    async fn claim_command(
        connection: &mut PgConnection,
        names: &TableNames,
        command: CommandKey<'_>,
        fingerprint: Option<&str>,
    ) -> Result<CommandClaim, sqlx::Error> {
        let table = names.table("command", '"');
        let insert = trusted(format!(
            "insert into {table} (operation, command_id, fingerprint) values ($1, $2, $3) on conflict do nothing"
        ));
        let select = trusted(format!(
            "select fingerprint, result from {table} where operation = $1 and command_id = $2"
        ));
        loop {
            let done = sqlx::query(insert.clone())
                .bind(command.operation)
                .bind(command.id)
                .bind(fingerprint)
                .execute(&mut *connection)
                .await?;
            if done.rows_affected() > 0 {
                return Ok(CommandClaim::New);
            }
            let found = sqlx::query_as(select.clone())
                .bind(command.operation)
                .bind(command.id)
                .fetch_optional(&mut *connection)
                .await?;
            // None: it was forgotten between the two statements.
            if let Some((fingerprint, result)) = found {
                return Ok(CommandClaim::Done {
                    fingerprint,
                    result,
                });
            }
        }
    }

    async fn complete_command(
        connection: &mut PgConnection,
        names: &TableNames,
        command: CommandKey<'_>,
        result: &str,
    ) -> Result<(), sqlx::Error> {
        let table = names.table("command", '"');
        let sql = trusted(format!(
            "update {table} set result = $3 where operation = $1 and command_id = $2"
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
        connection: &mut PgConnection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> Result<Vec<String>, sqlx::Error> {
        let table = names.table("inbox", '"');
        let sql = trusted(format!(
            "insert into {table} (source, message_id)
select $1, message from unnest($2::text[]) with ordinality as m (message, place) order by place
on conflict do nothing returning message_id"
        ));
        sqlx::query_scalar(sql)
            .bind(source)
            .bind(messages)
            .fetch_all(connection)
            .await
    }

    async fn forget(
        connection: &mut PgConnection,
        names: &TableNames,
        what: Retained,
        micros: i64,
        limit: i64,
    ) -> Result<u64, sqlx::Error> {
        let table = names.table(what.table(), '"');
        let sql = trusted(format!(
            "delete from {table} where ctid = any(array(
    select ctid from {table} where created_at <= statement_timestamp() - $1 * interval '1 microsecond'
    order by created_at limit $2 for update skip locked
))"
        ));
        let done = sqlx::query(sql)
            .bind(micros)
            .bind(limit)
            .execute(connection)
            .await?;
        Ok(done.rows_affected())
    }
}
