//! Backlogs in MySQL.

use sqlx::{MySql, MySqlPool};

use super::{Fill, Part, event, payload};
use crate::database::Bench as _;

impl Fill for MySql {
    async fn remember_keys(pool: &MySqlPool) -> anyhow::Result<()> {
        let sql = "create table bench_key (n bigint primary key, `key` varbinary(255) not null, part smallint not null)
engine = innodb select cast(`key` as unsigned) as n, `key`, part from outbox_record;
analyze table bench_key";
        Self::execute(pool, sql).await
    }

    fn insert_part(Part { from, to, keys }: Part) -> String {
        let ([start, middle, end], event) = (payload(), event());
        let known = 2 * super::KEYS;
        let (first, last) = (from / known, to.div_ceil(known));
        // The table of keys counts, with itself: MySQL has no series.
        format!(
            "insert into outbox_record (id, part, `key`, event, version, event_id, payload, created_at)
select x.n + 1, k.part, k.`key`, '{event}', 1, unhex(md5(rand())), concat('{start}', x.n, '{middle}', k.n, '{end}'), utc_timestamp(6)
from (
    select a.n * {known} + b.n as n from bench_key a straight_join bench_key b
    where a.n between {first} and {last} and a.n * {known} + b.n >= {from} and a.n * {known} + b.n < {to}
) x straight_join bench_key k on k.n = x.n mod {keys}"
        )
    }

    /// It looks at the highest one.
    fn draw_after(_: u64) -> Option<String> {
        None
    }
}
