//! How MySQL reads pending records.

use std::collections::{HashMap, HashSet};

use sqlx::{MySql, MySqlConnection};

use crate::{
    record::Partition,
    store::{
        FetchedRecord, PendingQuery, Statements,
        call::{read, rows},
        columns::Cells as _,
    },
};

pub(super) async fn pending_records(
    connection: &mut MySqlConnection,
    sql: &Statements,
    query: PendingQuery<'_>,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let mut found = Vec::new();
    let mut unread = query.pages;
    // The server reads every branch of a union completely, whatever the limit is. So the first
    // statement has as many pages as full pages would fill the limit. Each next one has twice as many.
    let per_page = query.per_partition;
    let enough = query.limit.saturating_add(per_page - 1) / per_page.max(1);
    let mut count = usize::try_from(enough).unwrap_or(usize::MAX).max(4);
    while !unread.is_empty() {
        let room = query.limit.saturating_sub_unsigned(found.len() as u64);
        if room <= 0 {
            break;
        }
        let (pages, later) = unread.split_at(count.min(unread.len()));
        let part = PendingQuery {
            pages,
            limit: room,
            ..query
        };
        found.append(&mut if query.in_memory.is_empty() {
            read_pages(connection, sql, part).await?
        } else {
            read_pages_not_in_memory(connection, sql, part).await?
        });
        unread = later;
        count = count.saturating_mul(2);
    }
    Ok(found)
}

async fn read_pages(
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

/// Reads pages without the records in memory. MySQL and MariaDB exclude a list of ids slowly. So this
/// first reads the ids alone, from the index, and skips those in memory.
async fn read_pages_not_in_memory(
    connection: &mut MySqlConnection,
    sql: &Statements,
    pending: PendingQuery<'_>,
) -> Result<Vec<FetchedRecord>, sqlx::Error> {
    let mut in_memory_of: HashMap<Partition, HashSet<i64>> = HashMap::new();
    for one in pending.in_memory {
        in_memory_of
            .entry(one.partition)
            .or_default()
            .insert(one.id);
    }
    let limits = pending.pages.iter().map(|page| {
        let in_memory = in_memory_of.get(&page.partition).map_or(0, HashSet::len);
        pending
            .per_partition
            .saturating_add_unsigned(in_memory as u64)
    });
    let limits: Vec<i64> = limits.collect();
    let found = sql.pending_ids.bind("pages", pending.pages);
    let found = rows::<MySql>(connection, found.bind("limits", &*limits)).await?;
    let mut taken: HashMap<Partition, i64> = HashMap::new();
    let mut ids: Vec<i64> = Vec::new();
    for row in found {
        let (partition, id) = (row.partition(0)?, row.number(1)?);
        let count = taken.entry(partition).or_default();
        let ids_in_memory = in_memory_of.get(&partition);
        let is_in_memory = ids_in_memory.is_some_and(|ids| ids.contains(&id));
        if !is_in_memory && *count < pending.per_partition {
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
