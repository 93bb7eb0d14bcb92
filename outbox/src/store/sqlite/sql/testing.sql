-- name: stamp
-- `desc`, because the record was written just before.
update {record} set created_at = :created_at
where id = (select id from {record} where event_id = :event_id order by id desc limit 1)

-- name: scheduled
select id as record_id, null as handler, due_at from {record} where status = 'scheduled'
union all
select record_id, handler, due_at from {delivery} where status = 'retrying'

-- name: set_due
update {delivery} set due_at = :due_at where record_id = :record_id and handler = :handler and status = 'retrying'

-- name: highest
select coalesce(max(id), 0) from {record}

-- name: records_above
select {record_columns} from {record} r where r.id > :id order by r.id

-- name: record
select {record_columns} from {record} r where r.id = :id

-- name: reset_record
update {record} set status = case when :due_at is null then 'pending' else 'scheduled' end,
    due_at = :due_at, completed_at = null where id = :record_id

-- name: reset_failures
delete from {failure} where record_id = :record_id

-- name: delete_other_deliveries
delete from {delivery} where record_id = :record_id and (:handler is null or handler <> :handler)

-- name: reset_delivery
update {delivery} set status = 'waiting', blocking = 1, attempt = :attempt, failure_count = 0,
    first_failed_at = null, failed_at = null, due_at = null, finished_at = null, error = null, error_kind = null, fingerprint = null
where record_id = :record_id and handler = :handler
