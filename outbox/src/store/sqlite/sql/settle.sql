-- Every statement that changes rows of an owner has the fence: leases and owner.
-- `+`: the index of a column must not be preferred to the ids.

-- fragment: ours
-- The partitions that this process still owns.
(
    select l.part from json_each(:leases) f cross join {lease} l
    where l.part = f.value ->> 'part' and l.epoch = f.value ->> 'epoch' and l.owner = :owner
)

-- fragment: as_read
-- The records that are as the dispatcher read them.
id in (select u.value from json_each(:ids) u) and +status in ('pending', 'scheduled') and +part in {ours}

-- fragment: complete
update {record} set status = 'completed', completed_at = {now} where {as_read}

-- fragment: delete
delete from {record} where {as_read}

-- name: complete_records
{complete}

-- name: complete_records_alone
{complete}

-- name: delete_records
{delete}

-- name: delete_records_alone
{delete}

-- name: put_aside
update {record} set status = 'unhandled' where {as_read}

-- name: split_records
update {record} set status = 'split' where {as_read} returning id

-- name: add_deliveries
insert into {delivery} (record_id, part, key, handler, status, blocking, attempt, failure_count, first_failed_at,
    due_at, error, error_kind, fingerprint)
select u.value ->> 'record_id', u.value ->> 'part', u.value ->> 'key', u.value ->> 'handler', u.value ->> 'status',
    u.value ->> 'blocking', u.value ->> 'attempt', u.value ->> 'failure_count', u.value ->> 'first_failed_at',
    {now} + (u.value ->> 'due_in'), u.value ->> 'error', u.value ->> 'error_kind', u.value ->> 'fingerprint'
from json_each(:deliveries) u where true order by u.key
on conflict (record_id, handler) do nothing

-- name: change_deliveries
-- Only deliveries that are as the dispatcher read them.
update {delivery} as d set
    status = u.value ->> 'status', blocking = u.value ->> 'blocking', attempt = u.value ->> 'attempt',
    failure_count = u.value ->> 'failure_count', first_failed_at = u.value ->> 'first_failed_at',
    due_at = {now} + (u.value ->> 'due_in'),
    finished_at = case when u.value ->> 'status' = 'completed' then {now} end,
    error = coalesce(u.value ->> 'error', d.error), error_kind = coalesce(u.value ->> 'error_kind', d.error_kind),
    fingerprint = coalesce(u.value ->> 'fingerprint', d.fingerprint)
from json_each(:deliveries) as u
where d.record_id = u.value ->> 'record_id' and d.handler = u.value ->> 'handler'
    and +d.attempt = u.value ->> 'expected_attempt' and +d.status in ('waiting', 'retrying') and +d.part in {ours}

-- name: add_failures
insert into {failure} (record_id, handler, attempt, kind, fingerprint, error)
select d.record_id, d.handler, u.value ->> 'attempt', u.value ->> 'kind', u.value ->> 'fingerprint', u.value ->> 'error'
from json_each(:failures) u cross join {delivery} d
where d.record_id = u.value ->> 'record_id' and d.handler = u.value ->> 'handler' and +d.part in {ours}
on conflict do nothing

-- name: forget_failures
delete from {failure} where rowid in (
    select f.rowid from json_each(:failures) u cross join {failure} f
    where f.record_id = u.value ->> 'record_id' and f.handler = u.value ->> 'handler'
        and f.attempt <= (u.value ->> 'attempt') - :kept and u.value ->> 'part' in {ours}
)

-- fragment: is_over
-- A split record is over when none of its deliveries is left.
id in (select u.value from json_each(:ids) u) and +status = 'split' and not exists (
    select 1 from {delivery} d where d.record_id = {record}.id and d.status in ('waiting', 'retrying', 'failed')
)

-- fragment: deleted
-- The records that there are no more.
(select u.value from json_each(:ids) u where not exists (select 1 from {record} r where r.id = u.value))

-- name: complete_split_records
update {record} set status = 'completed', completed_at = {now} where {is_over}

-- name: delete_split_records
delete from {record} where {is_over}
-- then
delete from {delivery} where record_id in {deleted}
-- then
delete from {failure} where record_id in {deleted}

-- name: rename_handler
update {delivery} as d set handler = :to
where d.handler = :from and d.part in {ours} and not exists (
    select 1 from {delivery} e where e.record_id = d.record_id and e.handler = :to
)

-- name: requeue_unhandled
update {record} set status = 'pending' where id in (
    select id from {record} where status = 'unhandled' and part in {ours} and event = :event order by id limit :limit
)
