-- fragment: notify_if
-- Notifies only if an instance listens, because PostgreSQL serializes commits that notify. The insert itself reads
-- `listening`, so it notifies every instance that started to listen before it.
from {instance} where listening and expires_at > clock_timestamp() limit 1

-- fragment: insert_values
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries, dedup_key, due_at, status)
values (:event_id, :event, :version, :key, :part, :payload, :headers, :max_retries, :dedup_key,
    coalesce(clock_timestamp() + :due_in * interval '1 microsecond', timestamptz 'epoch' + :due_at * interval '1 microsecond'),
    case when :due_in::bigint is null and :due_at::bigint is null then 'pending' else 'scheduled' end)

-- name: insert
{insert_values} returning id, (select pg_notify('{channel}', :part::text)::text {notify_if})

-- name: insert_deduplicated
{insert_values} on conflict (dedup_key) where dedup_key is not null do nothing returning id,
    (select pg_notify('{channel}', :part::text)::text {notify_if})

-- name: insert_all
with published as (
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries)
select event_id, :event::text, :version::bigint, key, part, payload, :headers::text, :max_retries::bigint
from unnest(:records.event_id::uuid[], :records.key::text[], :records.part::smallint[], :records.payload::text[]) with ordinality as r (event_id, key, part, payload, place)
order by place
)
select pg_notify('{channel}', (select string_agg(distinct p::text, ',') from unnest(:records.part::smallint[]) as p))::text
{notify_if}
