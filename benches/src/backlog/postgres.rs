//! Backlogs in PostgreSQL.

use sqlx::{PgPool, Postgres};

use super::{Chunk, Fill, State, event, payload};
use crate::database::Bench as _;

impl Fill for Postgres {
    const KEY: &str = "key";

    async fn store_keys(pool: &PgPool) -> anyhow::Result<()> {
        let sql = "create table bench_key as select key::bigint as n, key, part from outbox_record;
alter table bench_key add primary key (n); analyze bench_key";
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
            State::Delayed => "clock_timestamp() + interval '1 year'",
            State::Pending | State::Blocked => "null",
        };
        // The server finds keys by a hash join, so it stores the rows in the order of their numbers.
        format!(
            "insert into outbox_record (id, part, status, key, event, version, event_id, payload, due_at)
select s.n + {first_id}, k.part, '{status}', k.key, '{event}', 1, gen_random_uuid(),
    '{start}' || s.n || '{middle}' || k.key || '{end}', {due}
from generate_series({from}::bigint, {to}::bigint - 1) as s (n) join bench_key k on k.n = {first_key} + s.n % {keys}"
        )
    }

    fn draw_after(records: u64) -> Option<String> {
        Some(format!(
            "select setval(pg_get_serial_sequence('outbox_record', 'id'), {records})"
        ))
    }
}
