-- fragment: insert_values
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries, dedup_key, due_at, status)
values (:event_id, :event, :version, :key, :part, :payload, :headers, :max_retries, :dedup_key,
    coalesce({now} + :due_in, :due_at),
    case when :due_in is null and :due_at is null then 'pending' else 'scheduled' end)

-- name: insert
{insert_values} returning id

-- name: insert_deduplicated
{insert_values} on conflict (dedup_key) where dedup_key is not null do nothing returning id

-- name: insert_all
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries)
select unhex(value ->> 0), :event, :version, value ->> 1, value ->> 2, value ->> 3, :headers, :max_retries
from json_each(:records) order by json_each.key
