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

/// Records from this id on stand beside a backlog and are never delivered.
pub(crate) const BESIDE: u64 = 1_000_000_000;

/// A part of a backlog: records `from` to `to`, of which number `n` has the key
/// `first_key + n % keys` and the id `first_id + n`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) keys: u64,
    pub(crate) first_key: u64,
    pub(crate) first_id: u64,
    pub(crate) state: State,
}

/// What is to become of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    /// Due in a year.
    Delayed,
    /// In a lane that one which has failed for good blocks.
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

/// The statements that write it.
pub(crate) trait Fill: sqlx::Database {
    /// The column `key`, which is a word of the language in some.
    const KEY: &str;

    /// From records of each key, once, to a table `bench_key (n, key, part)`.
    fn remember_keys(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Inserts a part.
    fn insert_part(part: Part) -> String;

    /// What a next id is drawn from knows that so many are taken.
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

/// The same beside what is there.
pub(crate) async fn add<Db: Bench>(site: &Site<Db>, records: u64, keys: u64) -> anyhow::Result<()> {
    let whole = Part {
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

/// Records that are not to be delivered: so many that are due in a year, and so many in lanes of
/// ten that are blocked by the first of them.
pub(crate) async fn add_beside<Db: Bench>(
    site: &Site<Db>,
    delayed: u64,
    blocked: u64,
) -> anyhow::Result<()> {
    let part = |state, to, keys, first_key, first_id| Part {
        from: 0,
        to,
        keys,
        first_key,
        first_id,
        state,
    };
    insert(site, part(State::Delayed, delayed, KEYS, 0, BESIDE)).await?;
    let (lanes, first) = ((blocked / 10).clamp(1, KEYS), BESIDE + delayed);
    insert(site, part(State::Blocked, blocked, lanes, KEYS, first)).await?;
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

async fn insert<Db: Bench>(site: &Site<Db>, whole: Part) -> anyhow::Result<()> {
    let mut from = whole.from;
    while from < whole.to {
        let to = whole.to.min(from + STEP);
        Db::execute(&site.pool, &Db::insert_part(Part { from, to, ..whole })).await?;
        from = to;
        site.progress.at(from, whole.to);
    }
    Ok(())
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
        let published = serde_json::to_string(&Happened::new(123_456, 3_456)).unwrap();
        assert_eq!(format!("{start}123456{middle}3456{end}"), published);
        assert!((90..110).contains(&published.len()), "{}", published.len());
    }
}
