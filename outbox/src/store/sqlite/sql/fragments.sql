-- Texts that several files include.

-- fragment: now
-- The database's present, in microseconds since 1970.
cast(unixepoch('subsec') * 1000000 as integer)

-- fragment: record_columns
r.part, r.id, r.event_id, r.event, r.version, r.key, r.payload, r.headers, r.created_at, r.max_retries

-- fragment: delivery_columns
d.handler, d.status = 'waiting' as waiting, d.blocking, d.attempt, d.failure_count, d.first_failed_at
