//! Backlogs in SQLite.

use sqlx::{Sqlite, SqlitePool};

use super::{Chunk, Fill, State, event, payload};
use crate::database::Bench as _;

impl Fill for Sqlite {
    const KEY: &str = "key";

    async fn store_keys(pool: &SqlitePool) -> anyhow::Result<()> {
        let sql = "create table bench_key (n integer primary key, key text not null, part integer not null);
insert into bench_key select cast(key as integer), key, part from outbox_record";
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
            State::Delayed => "cast((unixepoch('subsec') + 31536000) * 1000000 as integer)",
            State::Pending | State::Blocked => "null",
        };
        format!(
            "with recursive series (n) as (select {from} union all select n + 1 from series where n + 1 < {to})
insert into outbox_record (id, part, status, key, event, version, event_id, payload, due_at)
select s.n + {first_id}, k.part, '{status}', k.key, '{event}', 1, randomblob(16),
    '{start}' || s.n || '{middle}' || k.key || '{end}', {due}
from series s cross join bench_key k where k.n = {first_key} + s.n % {keys}"
        )
    }

    /// The database continues after the highest id.
    fn draw_after(_: u64) -> Option<String> {
        None
    }
}
