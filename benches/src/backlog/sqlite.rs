//! Backlogs in SQLite.

use sqlx::{Sqlite, SqlitePool};

use super::{Fill, Part, event, payload};
use crate::database::Bench as _;

impl Fill for Sqlite {
    async fn remember_keys(pool: &SqlitePool) -> anyhow::Result<()> {
        let sql = "create table bench_key (n integer primary key, key text not null, part integer not null);
insert into bench_key select cast(key as integer), key, part from outbox_record";
        Self::execute(pool, sql).await
    }

    fn insert_part(Part { from, to, keys }: Part) -> String {
        let ([start, middle, end], event) = (payload(), event());
        format!(
            "with recursive series (n) as (select {from} union all select n + 1 from series where n + 1 < {to})
insert into outbox_record (id, part, key, event, version, event_id, payload)
select s.n + 1, k.part, k.key, '{event}', 1, randomblob(16), '{start}' || s.n || '{middle}' || k.key || '{end}'
from series s cross join bench_key k where k.n = s.n % {keys}"
        )
    }

    /// It looks at the highest one.
    fn draw_after(_: u64) -> Option<String> {
        None
    }
}
