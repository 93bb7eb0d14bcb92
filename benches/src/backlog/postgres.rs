//! Backlogs in PostgreSQL.

use sqlx::{PgPool, Postgres};

use super::{Fill, Part, event, payload};
use crate::database::Bench as _;

impl Fill for Postgres {
    async fn remember_keys(pool: &PgPool) -> anyhow::Result<()> {
        let sql = "create table bench_key as select key::bigint as n, key, part from outbox_record;
alter table bench_key add primary key (n); analyze bench_key";
        Self::execute(pool, sql).await
    }

    fn insert_part(Part { from, to, keys }: Part) -> String {
        let ([start, middle, end], event) = (payload(), event());
        // The key is found by a hash, so that the rows come and are stored in their order.
        format!(
            "insert into outbox_record (id, part, key, event, version, event_id, payload)
select s.n + 1, k.part, k.key, '{event}', 1, gen_random_uuid(), '{start}' || s.n || '{middle}' || k.key || '{end}'
from generate_series({from}::bigint, {to}::bigint - 1) as s (n) join bench_key k on k.n = s.n % {keys}"
        )
    }

    fn draw_after(records: u64) -> Option<String> {
        Some(format!(
            "select setval(pg_get_serial_sequence('outbox_record', 'id'), {records})"
        ))
    }
}
