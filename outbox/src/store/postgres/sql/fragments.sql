-- Texts that several files include.

-- fragment: record_columns
r.part, r.id, r.event_id, r.event, r.version, r.key, r.payload, r.headers, r.created_at, r.max_retries

-- fragment: delivery_columns
d.handler, d.status = 'waiting' as waiting, d.blocking, d.attempt, d.failure_count, d.first_failed_at
