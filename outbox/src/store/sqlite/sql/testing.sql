-- name: stamp
-- ?1 event id  ?2 microseconds since 1970
-- From the newest record on: it was written a moment ago.
update {record} set created_at = ?2
where id = (select id from {record} where event_id = ?1 order by id desc limit 1)

-- name: scheduled
select id as record_id, null as handler, due_at from {record} where status = 'scheduled'
union all
select record_id, handler, due_at from {delivery} where status = 'retrying'

-- name: set_due
-- ?1 record  ?2 handler  ?3 microseconds since 1970
update {delivery} set due_at = ?3 where record_id = ?1 and handler = ?2 and status = 'retrying'

-- name: highest
select coalesce(max(id), 0) from {record}

-- name: records_above
-- ?1 id
select {record_columns} from {record} r where r.id > ?1 order by r.id

-- name: record
-- ?1 id
select {record_columns} from {record} r where r.id = ?1

-- name: reset_record
-- ?1 record  ?2 due at, in microseconds since 1970
update {record} set status = case when ?2 is null then 'pending' else 'scheduled' end,
    due_at = ?2, completed_at = null where id = ?1

-- name: reset_failures
-- ?1 record
delete from {failure} where record_id = ?1

-- name: delete_other_deliveries
-- ?1 record  ?3 the handler whose delivery stays
delete from {delivery} where record_id = ?1 and (?3 is null or handler <> ?3)

-- name: reset_delivery
-- ?1 record  ?3 handler  ?4 attempt
update {delivery} set status = 'waiting', blocking = 1, attempt = ?4, failure_count = 0,
    first_failed_at = null, due_at = null, finished_at = null, error = null, error_kind = null, fingerprint = null
where record_id = ?1 and handler = ?3
