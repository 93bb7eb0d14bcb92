-- Texts that several files include.
-- `[[..]]` is repeated for each call: `[[?]]` is a list of parameters, `[[select ..]]` a union of branches.

-- fragment: record_columns
r.part, r.id, r.event_id, r.event, r.version, r.`key`, r.payload, r.headers,
    timestampdiff(microsecond, '1970-01-01', r.created_at) as created_at, r.max_retries

-- fragment: delivery_columns
d.handler, d.status = 'waiting' as waiting, d.blocking, d.attempt, d.failure_count,
    timestampdiff(microsecond, '1970-01-01', d.first_failed_at) as first_failed_at

-- fragment: given_leases
json_table(?, '$[*]' columns (part smallint path '$[0]', epoch bigint path '$[1]')) f

-- fragment: given_ids
json_table(?, '$[*]' columns (id bigint path '$')) u
