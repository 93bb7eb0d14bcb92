-- fragment: insert_values
-- event id, event, version, key, partition, payload, headers, max retries, dedup key, due in microseconds,
-- due at microseconds since 1970
into {record} (event_id, event, version, `key`, part, payload, headers, max_retries, dedup_key, created_at, due_at, status)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, utc_timestamp(6),
    coalesce(utc_timestamp(6) + interval ? microsecond, timestamp('1970-01-01') + interval ? microsecond),
    if(due_at is null, 'pending', 'scheduled'))

-- name: insert
insert {insert_values}

-- name: insert_deduplicated
-- Every other error that `ignore` would hide was ruled out before.
insert ignore {insert_values}

-- name: insert_all
-- event, version, headers, max retries; id, key, partition and payload of each, as JSON
-- Without their own character set, the columns have the database's, which may be `latin1`.
insert into {record} (event_id, event, version, `key`, part, payload, headers, max_retries, created_at)
select unhex(r.event_id), ?, ?, r.record_key, r.part, r.payload, ?, ?, utc_timestamp(6)
from json_table(?, '$[*]' columns (
    place for ordinality,
    event_id char(32) path '$[0]',
    record_key varchar(255) character set utf8mb4 path '$[1]',
    part smallint path '$[2]',
    payload longtext character set utf8mb4 path '$[3]'
)) as r order by r.place
