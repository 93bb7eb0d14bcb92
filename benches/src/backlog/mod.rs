//! Backlogs that the server itself writes: millions of records take seconds. The columns have the
//! values that publishing would write.

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

/// The number of keys of a backlog in most scenarios. The table `bench_key` has twice as many, for
/// records that are not part of the backlog.
pub(crate) const KEYS: u64 = 10_000;

/// The number of records that one statement writes.
const STEP: u64 = 500_000;

/// Records with this id or a higher one are not part of a backlog and are never delivered.
pub(crate) const FIRST_OTHER_ID: u64 = 1_000_000_000;

/// A chunk of a backlog: records `from` to `to`, of which number `n` has the key
/// `first_key + n % keys` and the id `first_id + n`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) keys: u64,
    pub(crate) first_key: u64,
    pub(crate) first_id: u64,
    pub(crate) state: State,
}

/// The state of the records of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    /// Due in a year.
    Delayed,
    /// In a lane whose first record has failed permanently.
    Blocked,
}

impl State {
    fn status(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delayed => "scheduled",
            Self::Blocked => "split",
        }
    }
}

/// The statements that write a backlog.
pub(crate) trait Fill: sqlx::Database {
    /// The column `key`, quoted where it is a reserved word.
    const KEY: &str;

    /// Fills the table `bench_key (n, key, part)` from one record of each key.
    fn store_keys(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Inserts a chunk.
    fn insert_chunk(chunk: Chunk) -> String;

    /// A statement that makes the next id higher than `records`, if the database needs one.
    fn draw_after(records: u64) -> Option<String>;
}

/// Empties the tables and writes a backlog in which each key has every `keys`-th record.
pub(crate) async fn write<Db: Bench>(
    site: &Site<Db>,
    records: u64,
    keys: u64,
) -> anyhow::Result<()> {
    Db::empty(&site.pool).await?;
    add(site, records, keys).await
}

/// Writes a backlog without emptying the tables.
pub(crate) async fn add<Db: Bench>(site: &Site<Db>, records: u64, keys: u64) -> anyhow::Result<()> {
    let whole = Chunk {
        from: 0,
        to: records,
        keys,
        first_key: 0,
        first_id: 1,
        state: State::Pending,
    };
    insert(site, whole).await?;
    if let Some(sql) = Db::draw_after(records) {
        Db::execute(&site.pool, &sql).await?;
    }
    Db::settle_down(&site.pool).await
}

/// Writes records that are not deliverable: `delayed` records that are due in a year, and `blocked`
/// records in lanes of ten, of which the first one has failed.
pub(crate) async fn add_undeliverable<Db: Bench>(
    site: &Site<Db>,
    delayed: u64,
    blocked: u64,
) -> anyhow::Result<()> {
    let chunk = |state, to, keys, first_key, first_id| Chunk {
        from: 0,
        to,
        keys,
        first_key,
        first_id,
        state,
    };
    insert(
        site,
        chunk(State::Delayed, delayed, KEYS, 0, FIRST_OTHER_ID),
    )
    .await?;
    let (lanes, first) = ((blocked / 10).clamp(1, KEYS), FIRST_OTHER_ID + delayed);
    insert(site, chunk(State::Blocked, blocked, lanes, KEYS, first)).await?;
    let (key, heads) = (Db::KEY, first + lanes);
    let sql = format!(
        "insert into outbox_delivery (record_id, part, {key}, handler, status, blocking, attempt, failure_count, error, error_kind, fingerprint)
select id, part, {key}, 'count', case when id < {heads} then 'failed' else 'waiting' end, true,
    case when id < {heads} then 4 else 1 end, case when id < {heads} then 4 else 0 end,
    case when id < {heads} then 'it failed' end, case when id < {heads} then 'error' end, case when id < {heads} then 'it failed' end
from outbox_record where id >= {first} and status = 'split' order by id"
    );
    Db::execute(&site.pool, &sql).await
}

async fn insert<Db: Bench>(site: &Site<Db>, whole: Chunk) -> anyhow::Result<()> {
    let mut from = whole.from;
    while from < whole.to {
        let to = whole.to.min(from + STEP);
        Db::execute(&site.pool, &Db::insert_chunk(Chunk { from, to, ..whole })).await?;
        from = to;
        site.progress.at(from, whole.to);
    }
    Ok(())
}

/// The payload of an event, as SQL: the texts before, between and after its numbers.
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
    fn the_payload_equals_that_of_a_published_event() {
        let [start, middle, end] = payload();
        let published = serde_json::to_string(&Happened::new(123_456, 3_456)).unwrap();
        assert_eq!(format!("{start}123456{middle}3456{end}"), published);
        assert!((90..110).contains(&published.len()), "{}", published.len());
    }
}
