//! How MySQL reads pending records.

use std::collections::{HashMap, HashSet};

use sqlx::{MySql, MySqlConnection};

use crate::store::{
    FetchedRecord, PendingQuery, Statements,
    call::{read, rows},
    columns::Cells as _,
};

pub(super) async fn pending_records(
    connection: &mut MySqlConnection,
    sql: &Statements,
    query: PendingQuery<'_>,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let mut found = Vec::new();
    let mut left = query.pages;
    // The server reads every branch of a statement to its end, whatever its limit is. So as many
    // pages as would fill it, and if they do not, twice as many.
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

async fn some_pending(
    connection: &mut MySqlConnection,
    sql: &Statements,
    pending: PendingQuery<'_>,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let statement = if pending.pages.len() == 1 {
        &sql.pending_page
    } else {
        &sql.pending_pages
    };
    let limits = vec![pending.per_partition.min(pending.limit); pending.pages.len()];
    let pages = statement.bind("pages", pending.pages);
    let pages = pages.bind("limits", &*limits).bind("limit", pending.limit);
    read::<MySql, _>(connection, pages).await
}

/// The same without the records in memory. Their ids are left out here: no database of this kind
/// is good at leaving out a list of ids. So the ids alone are read first, from the index.
async fn unknown_pending(
    connection: &mut MySqlConnection,
    sql: &Statements,
    pending: PendingQuery<'_>,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let mut known_of: HashMap<u16, HashSet<i64>> = HashMap::new();
    for known in pending.in_memory {
        known_of.entry(known.part).or_default().insert(known.id);
    }
    let limits = pending.pages.iter().map(|page| {
        let known = known_of.get(&page.part).map_or(0, HashSet::len);
        pending.per_partition.saturating_add_unsigned(known as u64)
    });
    let limits: Vec<i64> = limits.collect();
    let found = sql.pending_ids.bind("pages", pending.pages);
    let found = rows::<MySql>(connection, found.bind("limits", &*limits)).await?;
    let mut taken: HashMap<u16, i64> = HashMap::new();
    let mut ids: Vec<i64> = Vec::new();
    for row in found {
        let (partition, id) = (row.partition(0)?, row.number(1)?);
        let count = taken.entry(partition).or_default();
        let known = known_of.get(&partition);
        let is_known = known.is_some_and(|known| known.contains(&id));
        if !is_known && *count < pending.per_partition {
            *count += 1;
            ids.push(id);
        }
    }
    ids.truncate(usize::try_from(pending.limit).unwrap_or(usize::MAX));
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    read::<MySql, _>(connection, sql.records_of_ids.bind("ids", &*ids)).await
}
