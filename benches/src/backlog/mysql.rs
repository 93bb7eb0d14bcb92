//! Backlogs in MySQL.

use sqlx::{MySql, MySqlPool};

use super::{Chunk, Fill, State, event, payload};
use crate::database::Bench as _;

impl Fill for MySql {
    const KEY: &str = "`key`";

    async fn store_keys(pool: &MySqlPool) -> anyhow::Result<()> {
        let sql = "create table bench_key (n bigint primary key, `key` varbinary(255) not null, part smallint not null)
engine = innodb select cast(`key` as unsigned) as n, `key`, part from outbox_record;
analyze table bench_key";
        Self::execute(pool, sql).await
    }

    fn insert_chunk(chunk: Chunk) -> String {
        let Chunk {
            from,
            to,
            keys,
            first_key,
            first_id,
            state,
        } = chunk;
        let ([start, middle, end], event, status) = (payload(), event(), state.status());
        let due = match state {
            State::Delayed => "utc_timestamp(6) + interval 1 year",
            State::Pending | State::Blocked => "null",
        };
        let known = 2 * super::KEYS;
        let (first, last) = (from / known, to.div_ceil(known));
        // MySQL has no series, so a join of the table of keys with itself gives the numbers. Records
        // are one minute old: dispatchers read the last ten seconds several times, to find late commits.
        format!(
            "insert into outbox_record (id, part, status, `key`, event, version, event_id, payload, created_at, due_at)
select x.n + {first_id}, k.part, '{status}', k.`key`, '{event}', 1, unhex(md5(rand())),
    concat('{start}', x.n, '{middle}', k.n, '{end}'), utc_timestamp(6) - interval 1 minute, {due}
from (
    select a.n * {known} + b.n as n from bench_key a straight_join bench_key b
    where a.n between {first} and {last} and a.n * {known} + b.n >= {from} and a.n * {known} + b.n < {to}
) x straight_join bench_key k on k.n = {first_key} + x.n mod {keys}"
        )
    }

    /// The database continues after the highest id.
    fn draw_after(_: u64) -> Option<String> {
        None
    }
}
