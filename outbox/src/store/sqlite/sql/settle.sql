-- Every statement that changes rows of an owner has the fence in ?1 and ?2: partitions with epochs, and owner.
-- `+`: the index of a column must not be preferred to the ids.

-- fragment: ours
-- The partitions that this process still owns.
(
    select l.part from json_each(?1) f cross join {lease} l
    where l.part = f.value ->> 0 and l.epoch = f.value ->> 1 and l.owner = ?2
)

-- fragment: as_read
-- The records of ?3 that are as the dispatcher read them.
id in (select u.value from json_each(?3) u) and +status in ('pending', 'scheduled') and +part in {ours}

-- name: complete_records
update {record} set status = 'completed', completed_at = {now} where {as_read}

-- name: delete_records
delete from {record} where {as_read}

-- name: put_aside
update {record} set status = 'unhandled' where {as_read}

-- name: split_records
update {record} set status = 'split' where {as_read} returning id

-- name: add_deliveries
-- ?1 deliveries of records that were split, as JSON
insert into {delivery} (record_id, part, key, handler, status, blocking, attempt, failure_count, first_failed_at,
    due_at, error, error_kind, fingerprint)
select u.value ->> 'record_id', u.value ->> 'part', u.value ->> 'key', u.value ->> 'handler', u.value ->> 'status',
    u.value ->> 'blocking', u.value ->> 'attempt', u.value ->> 'failure_count', u.value ->> 'first_failed_at',
    {now} + (u.value ->> 'due_in'), u.value ->> 'error', u.value ->> 'error_kind', u.value ->> 'fingerprint'
from json_each(?1) u where true order by u.key
on conflict (record_id, handler) do nothing

-- name: change_deliveries
-- ?3 deliveries as JSON
-- Only deliveries that are as the dispatcher read them.
update {delivery} as d set
    status = u.value ->> 'status', blocking = u.value ->> 'blocking', attempt = u.value ->> 'attempt',
    failure_count = u.value ->> 'failure_count', first_failed_at = u.value ->> 'first_failed_at',
    due_at = {now} + (u.value ->> 'due_in'),
    finished_at = case when u.value ->> 'status' = 'completed' then {now} end,
    error = coalesce(u.value ->> 'error', d.error), error_kind = coalesce(u.value ->> 'error_kind', d.error_kind),
    fingerprint = coalesce(u.value ->> 'fingerprint', d.fingerprint)
from json_each(?3) as u
where d.record_id = u.value ->> 'record_id' and d.handler = u.value ->> 'handler'
    and +d.attempt = u.value ->> 'expected_attempt' and +d.status in ('waiting', 'retrying') and +d.part in {ours}

-- name: add_failures
-- ?3 failures as JSON
insert into {failure} (record_id, handler, attempt, kind, fingerprint, error)
select d.record_id, d.handler, u.value ->> 'attempt', u.value ->> 'kind', u.value ->> 'fingerprint', u.value ->> 'error'
from json_each(?3) u cross join {delivery} d
where d.record_id = u.value ->> 'record_id' and d.handler = u.value ->> 'handler' and +d.part in {ours}
on conflict do nothing

-- name: forget_failures
-- ?3 failures as JSON  ?4 how many are kept per delivery
delete from {failure} where rowid in (
    select f.rowid from json_each(?3) u cross join {failure} f
    where f.record_id = u.value ->> 'record_id' and f.handler = u.value ->> 'handler'
        and f.attempt <= (u.value ->> 'attempt') - ?4 and u.value ->> 'part' in {ours}
)

-- fragment: is_over
-- A split record is over when none of its deliveries is left. ?1 ids.
id in (select u.value from json_each(?1) u) and +status = 'split' and not exists (
    select 1 from {delivery} d where d.record_id = {record}.id and d.status in ('waiting', 'retrying', 'failed')
)

-- name: complete_split_records
update {record} set status = 'completed', completed_at = {now} where {is_over}

-- name: delete_split_records
delete from {record} where {is_over} returning id

-- name: delete_deliveries
-- ?1 ids of records
delete from {delivery} where record_id in (select u.value from json_each(?1) u)

-- name: delete_failures
-- ?1 ids of records
delete from {failure} where record_id in (select u.value from json_each(?1) u)

-- name: rename_handler
-- ?3 from  ?4 to
update {delivery} as d set handler = ?4
where d.handler = ?3 and d.part in {ours} and not exists (
    select 1 from {delivery} e where e.record_id = d.record_id and e.handler = ?4
)

-- name: requeue_unhandled
-- ?3 event  ?4 limit
update {record} set status = 'pending' where id in (
    select id from {record} where status = 'unhandled' and part in {ours} and event = ?3 order by id limit ?4
)
