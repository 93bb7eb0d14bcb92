-- fragment: notify_if
-- Only if an instance listens: commits that notify wait for each other. The statement of the publisher asks
-- itself, so that an instance that began to listen before it is notified.
from {instance} where listening and expires_at > clock_timestamp() limit 1

-- fragment: insert_values
-- $1 event id  $2 event  $3 version  $4 key  $5 partition  $6 payload  $7 headers  $8 max retries  $9 dedup key
-- $10 due in microseconds  $11 due at microseconds since 1970
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries, dedup_key, due_at, status)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9,
    coalesce(clock_timestamp() + $10 * interval '1 microsecond', timestamptz 'epoch' + $11 * interval '1 microsecond'),
    case when $10::bigint is null and $11::bigint is null then 'pending' else 'scheduled' end)

-- name: insert
{insert_values} returning id, (select pg_notify('{channel}', $5::text)::text {notify_if})

-- name: insert_deduplicated
{insert_values} on conflict (dedup_key) where dedup_key is not null do nothing returning id,
    (select pg_notify('{channel}', $5::text)::text {notify_if})

-- name: insert_all
-- $1 event ids  $2 keys  $3 partitions  $4 payloads  $5 event  $6 version  $7 headers  $8 max retries
with published as (
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries)
select event_id, $5::text, $6::bigint, key, part, payload, $7::text, $8::bigint
from unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[]) with ordinality as r (event_id, key, part, payload, place)
order by place
)
select pg_notify('{channel}', (select string_agg(distinct p::text, ',') from unnest($3::smallint[]) as p))::text
{notify_if}
