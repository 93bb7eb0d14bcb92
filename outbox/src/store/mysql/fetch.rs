//! Reading records from MySQL.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use sqlx::{MySql, MySqlConnection};

use super::{MySqlStatements, QUOTE};
use crate::store::{
    DueQuery, FetchSql, FetchedRecord, OpenWriters, PendingQuery, TableNames, columns::read_all,
    settle::json, trusted,
};

impl FetchSql for MySql {
    async fn pending_records(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        query: PendingQuery<'_>,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let mut found = Vec::new();
        let mut left = query.pages;
        // The server reads every branch of a statement to its end, whatever its limit is. So as
        // many pages as would fill it, and if they do not, twice as many.
        let per_page = query.per_partition;
        let enough = query.limit.saturating_add(per_page - 1) / per_page.max(1);
        let mut count = usize::try_from(enough).unwrap_or(usize::MAX).max(4);
        while !left.is_empty() {
            let room = query.limit.saturating_sub_unsigned(found.len() as u64);
            if room <= 0 {
                break;
            }
            let (pages, later) = left.split_at(count.min(left.len()));
            let some = PendingQuery {
                pages,
                limit: room,
                ..query
            };
            found.append(&mut if query.in_memory.is_empty() {
                some_pending(connection, sql, some).await?
            } else {
                unknown_pending(connection, sql, some).await?
            });
            left = later;
            count = count.saturating_mul(2);
        }
        Ok(found)
    }

    async fn due_records(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        due: DueQuery<'_>,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        if due.parts.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = sqlx::query(sql.due_records.times(due.parts.len()));
        for part in due.parts {
            query = query.bind(part.cast_signed());
            query = query.bind(due.offset).bind(due.limit);
        }
        read_all(&query.bind(due.limit).fetch_all(connection).await?)
    }

    async fn next_due(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        due: DueQuery<'_>,
    ) -> Result<Option<i64>, sqlx::Error> {
        let parts = json(due.parts)?;
        sqlx::query_scalar(sql.next_due.clone())
            .bind(due.offset)
            .bind(&parts)
            .bind(json(due.handlers)?)
            .bind(&parts)
            .fetch_one(connection)
            .await
    }

    async fn open_writers(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
    ) -> Result<OpenWriters, sqlx::Error> {
        let clock = sqlx::query_scalar(sql.clock.clone());
        let micros: i64 = clock.fetch_one(connection).await?;
        let clock = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MIN);
        Ok(OpenWriters::Unnamed { clock })
    }

    async fn unhandled_events(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        parts: &[u16],
    ) -> Result<Vec<String>, sqlx::Error> {
        let mut query = sqlx::query_scalar(sql.unhandled_events.times(parts.len()));
        for part in parts {
            query = query.bind(part.cast_signed());
        }
        query.fetch_all(connection).await
    }

    async fn paused_handlers(
        connection: &mut MySqlConnection,
        names: &TableNames,
    ) -> Result<Vec<String>, sqlx::Error> {
        let pause = names.table("pause", QUOTE);
        sqlx::query_scalar(trusted(format!("select handler from {pause}")))
            .fetch_all(connection)
            .await
    }
}

async fn some_pending(
    connection: &mut MySqlConnection,
    sql: &MySqlStatements,
    pending: PendingQuery<'_>,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let is_one = pending.pages.len() == 1;
    let mut query = sqlx::query(if is_one {
        sql.pending_page.clone()
    } else {
        sql.pending_pages.times(pending.pages.len())
    });
    for page in pending.pages {
        query = query
            .bind(page.part.cast_signed())
            .bind(page.after)
            .bind(pending.per_partition.min(pending.limit));
    }
    if !is_one {
        query = query.bind(pending.limit);
    }
    read_all(&query.fetch_all(connection).await?)
}

/// The same without the records in memory. Their ids are left out here: no database of this kind
/// is good at leaving out a list of ids. So the ids alone are read first, from the index.
async fn unknown_pending(
    connection: &mut MySqlConnection,
    sql: &MySqlStatements,
    pending: PendingQuery<'_>,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let mut known_of: HashMap<u16, HashSet<i64>> = HashMap::new();
    for known in pending.in_memory {
        known_of.entry(known.part).or_default().insert(known.id);
    }
    let mut query = sqlx::query_as(sql.pending_ids.times(pending.pages.len()));
    for page in pending.pages {
        let known = known_of.get(&page.part).map_or(0, HashSet::len);
        query = query
            .bind(page.part.cast_signed())
            .bind(page.after)
            .bind(pending.per_partition.saturating_add_unsigned(known as u64));
    }
    let found: Vec<(i16, i64)> = query.fetch_all(&mut *connection).await?;
    let mut taken: HashMap<u16, i64> = HashMap::new();
    let mut ids: Vec<i64> = Vec::new();
    for (part, id) in found {
        let part = part.cast_unsigned();
        let count = taken.entry(part).or_default();
        let is_known = known_of.get(&part).is_some_and(|known| known.contains(&id));
        if !is_known && *count < pending.per_partition {
            *count += 1;
            ids.push(id);
        }
    }
    ids.truncate(usize::try_from(pending.limit).unwrap_or(usize::MAX));
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let records = sqlx::query(sql.records_of_ids.clone()).bind(json(&ids)?);
    read_all(&records.fetch_all(connection).await?)
}
