-- The columns that the dispatcher reads, on every database. `columns.rs` decodes them.
-- A driver's `fragments.sql` says how it writes a time and the name of the column `key`.

-- fragment: record_columns
r.part, r.id, r.event_id, r.event, r.version, r.{key}, r.payload, r.headers, {created_at} as created_at, r.max_retries

-- fragment: delivery_columns
d.handler, d.status = 'waiting' as is_waiting, d.blocking, d.attempt, d.failure_count,
    {first_failed_at} as first_failed_at
