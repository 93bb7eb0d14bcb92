//! Reading from MySQL.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use sqlx::{MySql, MySqlConnection};

use super::{
    places,
    rows::{RECORD, fetched},
};
use crate::store::{
    FetchSql, FetchedRecord, InMemory, OpenWriters, Page, TableNames, settle::json, trusted,
};

/// The same statement for each of many partitions. There is no `lateral` in MariaDB, and a scan of
/// all partitions at once cannot stop after so many rows of each.
pub(super) fn for_each(count: usize, branch: &str) -> String {
    match count {
        1 => branch.to_owned(),
        _ => vec![format!("({branch})"); count].join("\nunion all\n"),
    }
}

impl FetchSql for MySql {
    async fn pending_records(
        connection: &mut MySqlConnection,
        names: &TableNames,
        pages: &[Page],
        known: &[InMemory],
        per_page: i64,
        limit: i64,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let mut found = Vec::new();
        let mut left = pages;
        // The server reads every branch of a statement to its end, whatever its limit is. So as
        // many pages as would fill it, and if they do not, twice as many.
        let enough = limit.saturating_add(per_page - 1) / per_page.max(1);
        let mut count = usize::try_from(enough).unwrap_or(usize::MAX).max(4);
        while !left.is_empty() {
            let room = limit.saturating_sub_unsigned(found.len() as u64);
            if room <= 0 {
                break;
            }
            let (now, later) = left.split_at(count.min(left.len()));
            found.append(&mut match known {
                [] => some_pending(connection, names, now, per_page, room).await?,
                _ => unknown_pending(connection, names, now, known, per_page, room).await?,
            });
            left = later;
            count = count.saturating_mul(2);
        }
        Ok(found)
    }

    async fn due_records(
        connection: &mut MySqlConnection,
        names: &TableNames,
        parts: &[u16],
        offset: i64,
        limit: i64,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let record = names.table("record", '`');
        let branch = format!(
            "select id, due_at from {record}
where status = 'scheduled' and part = ? and due_at <= utc_timestamp(6) + interval ? microsecond
order by due_at, id limit ?"
        );
        let branches = for_each(parts.len(), &branch);
        let sql = trusted(format!(
            "select {RECORD} from (select id, due_at from ({branches}) x order by due_at, id limit ?) x
straight_join {record} r on r.id = x.id
order by x.due_at, x.id"
        ));
        let mut query = sqlx::query(sql);
        for part in parts {
            query = query.bind(part.cast_signed()).bind(offset).bind(limit);
        }
        let rows = query.bind(limit).fetch_all(connection).await?;
        rows.iter().map(fetched).collect()
    }

    async fn next_due(
        connection: &mut MySqlConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
    ) -> Result<Option<i64>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let parts_table = "json_table(?, '$[*]' columns (part smallint path '$')) p";
        let sql = trusted(format!(
            "select timestampdiff(microsecond, utc_timestamp(6), min(due_at)) - ? from (
    select (
        select r.due_at from {record} r where r.status = 'scheduled' and r.part = p.part order by r.due_at limit 1
    ) as due_at from {parts_table}
    union all
    select (
        select d.due_at from {delivery} d
        where d.status = 'retrying' and d.part = p.part and json_contains(?, json_quote(d.handler))
        order by d.due_at limit 1
    ) from {parts_table}
) x"
        ));
        let parts = json(parts)?;
        sqlx::query_scalar(sql)
            .bind(offset)
            .bind(&parts)
            .bind(json(handlers)?)
            .bind(&parts)
            .fetch_one(connection)
            .await
    }

    async fn open_writers(
        connection: &mut MySqlConnection,
        _: &TableNames,
    ) -> Result<OpenWriters, sqlx::Error> {
        let now = "select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))";
        let micros: i64 = sqlx::query_scalar(now).fetch_one(connection).await?;
        let clock = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MIN);
        Ok(OpenWriters::Unnamed { clock })
    }

    async fn unhandled_events(
        connection: &mut MySqlConnection,
        names: &TableNames,
        parts: &[u16],
    ) -> Result<Vec<String>, sqlx::Error> {
        let record = names.table("record", '`');
        let sql = trusted(format!(
            "select distinct event from {record} where status = 'unhandled' and part in ({})",
            places(parts.len())
        ));
        let mut query = sqlx::query_scalar(sql);
        for part in parts {
            query = query.bind(part.cast_signed());
        }
        query.fetch_all(connection).await
    }

    async fn paused_handlers(
        connection: &mut MySqlConnection,
        names: &TableNames,
    ) -> Result<Vec<String>, sqlx::Error> {
        let pause = names.table("pause", '`');
        sqlx::query_scalar(trusted(format!("select handler from {pause}")))
            .fetch_all(connection)
            .await
    }
}

async fn some_pending(
    connection: &mut MySqlConnection,
    names: &TableNames,
    pages: &[Page],
    per_page: i64,
    limit: i64,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let record = names.table("record", '`');
    let pending = names.plain("record_pending");
    // Forced: the index of due times holds the ids too, in another order.
    let branch = format!(
        "select {RECORD} from {record} r force index (`{pending}`)
where r.status = 'pending' and r.part = ? and r.id > ? order by r.id limit ?"
    );
    // Not as a table in `from`: that would be written to the disk first.
    let mut sql = for_each(pages.len(), &branch);
    if pages.len() > 1 {
        sql.push_str("\nlimit ?");
    }
    let mut query = sqlx::query(trusted(sql));
    for page in pages {
        query = query
            .bind(page.part.cast_signed())
            .bind(page.after)
            .bind(per_page.min(limit));
    }
    if pages.len() > 1 {
        query = query.bind(limit);
    }
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(fetched).collect()
}

/// The same without those that are known. The ids alone are read first, from the index and in one
/// statement: no database of this kind is good at leaving out a list of them.
async fn unknown_pending(
    connection: &mut MySqlConnection,
    names: &TableNames,
    pages: &[Page],
    known: &[InMemory],
    per_page: i64,
    limit: i64,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let record = names.table("record", '`');
    let mut known_of: HashMap<u16, HashSet<i64>> = HashMap::new();
    for known in known {
        known_of.entry(known.part).or_default().insert(known.id);
    }
    let pending = names.plain("record_pending");
    let branch = format!(
        "select r.part, r.id from {record} r force index (`{pending}`)
where r.status = 'pending' and r.part = ? and r.id > ? order by r.id limit ?"
    );
    let mut query = sqlx::query_as(trusted(for_each(pages.len(), &branch)));
    for page in pages {
        let known = known_of.get(&page.part).map_or(0, HashSet::len);
        query = query
            .bind(page.part.cast_signed())
            .bind(page.after)
            .bind(per_page.saturating_add_unsigned(known as u64));
    }
    let found: Vec<(i16, i64)> = query.fetch_all(&mut *connection).await?;
    let mut taken: HashMap<u16, i64> = HashMap::new();
    let mut ids: Vec<i64> = Vec::new();
    for (part, id) in found {
        let part = part.cast_unsigned();
        let count = taken.entry(part).or_default();
        let is_known = known_of.get(&part).is_some_and(|known| known.contains(&id));
        if !is_known && *count < per_page {
            *count += 1;
            ids.push(id);
        }
    }
    ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = trusted(format!(
        "select {RECORD} from json_table(?, '$[*]' columns (place for ordinality, id bigint path '$')) x
straight_join {record} r on r.id = x.id
where r.status = 'pending'
order by x.place"
    ));
    let rows = sqlx::query(sql)
        .bind(json(&ids)?)
        .fetch_all(connection)
        .await?;
    rows.iter().map(fetched).collect()
}
