-- fragment: insert_values
into {record} (event_id, event, version, `key`, part, payload, headers, max_retries, dedup_key, created_at, due_at, status)
values (:event_id, :event, :version, :key, :part, :payload, :headers, :max_retries, :dedup_key, utc_timestamp(6),
    coalesce(utc_timestamp(6) + interval :due_in microsecond, timestamp('1970-01-01') + interval :due_at microsecond),
    if(due_at is null, 'pending', 'scheduled'))

-- name: insert
insert {insert_values}

-- name: insert_deduplicated
-- The caller has ruled out all other errors that `ignore` hides.
insert ignore {insert_values}

-- name: insert_all
-- Without a character set here, the columns have that of the database, which may be `latin1`.
insert into {record} (event_id, event, version, `key`, part, payload, headers, max_retries, created_at)
select unhex(r.event_id), :event, :version, r.record_key, r.part, r.payload, :headers, :max_retries, utc_timestamp(6)
from json_table(:records, '$[*]' columns (
    place for ordinality,
    event_id char(32) path '$[0]',
    record_key varchar(255) character set utf8mb4 path '$[1]',
    part smallint path '$[2]',
    payload longtext character set utf8mb4 path '$[3]'
)) as r order by r.place
