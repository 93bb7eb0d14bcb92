-- fragment: insert_values
-- ?1 event id  ?2 event  ?3 version  ?4 key  ?5 partition  ?6 payload  ?7 headers  ?8 max retries  ?9 dedup key
-- ?10 due in microseconds  ?11 due at microseconds since 1970
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries, dedup_key, due_at, status)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
    coalesce({now} + ?10, ?11),
    case when ?10 is null and ?11 is null then 'pending' else 'scheduled' end)

-- name: insert
{insert_values} returning id

-- name: insert_deduplicated
{insert_values} on conflict (dedup_key) where dedup_key is not null do nothing returning id

-- name: insert_all
-- ?1 id, key, partition and payload of each, as JSON  ?2 event  ?3 version  ?4 headers  ?5 max retries
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries)
select unhex(value ->> 0), ?2, ?3, value ->> 1, value ->> 2, value ->> 3, ?4, ?5
from json_each(?1) order by json_each.key
