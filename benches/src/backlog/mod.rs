//! Records that wait, written by the server itself: millions take seconds. Their columns are those
//! that publishing them would have written.

mod mysql;
mod postgres;
mod sqlite;

use outbox::OutboxEvent as _;
use sqlx::Pool;

use crate::{
    database::Bench,
    event::{Happened, TEXT},
    site::Site,
};

/// As many keys as a backlog has, unless a scenario says otherwise. As many again are known, for
/// records that stand beside it.
pub(crate) const KEYS: u64 = 10_000;

/// How many records one statement writes.
const STEP: u64 = 500_000;

/// A part of a backlog: records `from` to `to`, of which number `n` has the key `n % keys`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) keys: u64,
}

/// The statements that write it.
pub(crate) trait Fill: sqlx::Database {
    /// From records of each key, once, to a table `bench_key (n, key, part)`.
    fn remember_keys(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Inserts a part; the id of each is its number plus one.
    fn insert_part(part: Part) -> String;

    /// What a next id is drawn from knows that so many are taken.
    fn draw_after(records: u64) -> Option<String>;
}

/// Empties the tables and writes the backlog.
pub(crate) async fn write<Db: Bench>(
    site: &Site<Db>,
    records: u64,
    keys: u64,
) -> anyhow::Result<()> {
    site.progress.doing("writing the backlog");
    Db::empty(&site.pool).await?;
    let mut from = 0;
    while from < records {
        let to = records.min(from + STEP);
        Db::execute(&site.pool, &Db::insert_part(Part { from, to, keys })).await?;
        from = to;
        site.progress.at(from, records);
    }
    if let Some(sql) = Db::draw_after(records) {
        Db::execute(&site.pool, &sql).await?;
    }
    Db::settle_down(&site.pool).await
}

/// The payload of an event, as SQL: what stands before and between its numbers.
fn payload() -> [String; 3] {
    [
        r#"{"n":"#.to_owned(),
        r#","key":"#.to_owned(),
        format!(r#","text":"{TEXT}"}}"#),
    ]
}

fn event() -> &'static str {
    Happened::NAME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_the_event_as_it_is_published() {
        let [start, middle, end] = payload();
        let published = Happened::new(7, 3).to_json().unwrap();
        assert_eq!(format!("{start}7{middle}3{end}"), published);
        assert!((90..110).contains(&published.len()), "{}", published.len());
    }
}
