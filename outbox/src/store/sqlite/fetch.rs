//! Reading records from SQLite.

use sqlx::{Sqlite, SqliteConnection};

use super::{QUOTE, SqliteStatements};
use crate::store::{
    DueQuery, FetchSql, FetchedRecord, OpenWriters, PendingQuery, TableNames, columns::read_all,
    settle::json, trusted,
};

impl FetchSql for Sqlite {
    async fn pending_records(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        query: PendingQuery<'_>,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let in_memory: Vec<i64> = query.in_memory.iter().map(|known| known.id).collect();
        let rows = sqlx::query(sql.pending_records.clone())
            .bind(json(query.pages)?)
            .bind(query.per_partition)
            .bind(query.limit)
            .bind(json(&in_memory)?)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }

    async fn due_records(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        due: DueQuery<'_>,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let rows = sqlx::query(sql.due_records.clone())
            .bind(json(due.parts)?)
            .bind(due.offset)
            .bind(due.limit)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }

    async fn next_due(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        due: DueQuery<'_>,
    ) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar(sql.next_due.clone())
            .bind(json(due.parts)?)
            .bind(json(due.handlers)?)
            .bind(due.offset)
            .fetch_one(connection)
            .await
    }

    /// There is one writer at a time, and it draws its ids after it has become that.
    async fn open_writers(
        _: &mut SqliteConnection,
        _: &SqliteStatements,
    ) -> Result<OpenWriters, sqlx::Error> {
        Ok(OpenWriters::Serial)
    }

    async fn unhandled_events(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        parts: &[u16],
    ) -> Result<Vec<String>, sqlx::Error> {
        let events = sqlx::query_scalar(sql.unhandled_events.clone());
        events.bind(json(parts)?).fetch_all(connection).await
    }

    async fn paused_handlers(
        connection: &mut SqliteConnection,
        names: &TableNames,
    ) -> Result<Vec<String>, sqlx::Error> {
        let pause = names.table("pause", QUOTE);
        sqlx::query_scalar(trusted(format!("select handler from {pause}")))
            .fetch_all(connection)
            .await
    }
}
