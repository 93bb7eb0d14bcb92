//! Reading records from PostgreSQL.

use sqlx::{PgConnection, Postgres};

use super::{PostgresStatements, QUOTE, signed};
use crate::store::{
    DueQuery, FetchSql, FetchedRecord, OpenWriters, PendingQuery, TableNames, columns::read_all,
    trusted,
};

impl FetchSql for Postgres {
    async fn pending_records(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        query: PendingQuery<'_>,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let pages = query.pages.iter();
        let (parts, after): (Vec<i16>, Vec<i64>) = pages
            .map(|page| (page.part.cast_signed(), page.after))
            .unzip();
        let in_memory: Vec<i64> = query.in_memory.iter().map(|known| known.id).collect();
        let rows = sqlx::query(sql.pending_records.clone())
            .bind(parts)
            .bind(after)
            .bind(in_memory)
            .bind(query.per_partition)
            .bind(query.limit)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }

    async fn due_records(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        due: DueQuery<'_>,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let rows = sqlx::query(sql.due_records.clone())
            .bind(signed(due.parts))
            .bind(due.offset)
            .bind(due.limit)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }

    async fn next_due(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        due: DueQuery<'_>,
    ) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar(sql.next_due.clone())
            .bind(signed(due.parts))
            .bind(due.handlers)
            .bind(due.offset)
            .fetch_one(connection)
            .await
    }

    async fn open_writers(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
    ) -> Result<OpenWriters, sqlx::Error> {
        let writers = sqlx::query_as(sql.open_writers.clone());
        let rows: Vec<(Option<i64>, Option<String>)> = writers
            .bind(sql.record_table.as_str())
            .fetch_all(connection)
            .await?;
        let drawn = rows.first().and_then(|row| row.0);
        let names = rows.into_iter().filter_map(|row| row.1).collect();
        Ok(OpenWriters::Named { names, drawn })
    }

    async fn unhandled_events(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        parts: &[u16],
    ) -> Result<Vec<String>, sqlx::Error> {
        let events = sqlx::query_scalar(sql.unhandled_events.clone());
        events.bind(signed(parts)).fetch_all(connection).await
    }

    async fn paused_handlers(
        connection: &mut PgConnection,
        names: &TableNames,
    ) -> Result<Vec<String>, sqlx::Error> {
        let pause = names.table("pause", QUOTE);
        sqlx::query_scalar(trusted(format!("select handler from {pause}")))
            .fetch_all(connection)
            .await
    }
}
