-- Every statement of an owner has the fence: the leases and the owner.
-- `+` keeps the planner from using an index on this column instead of the ids.

-- fragment: owned
-- The partitions that this process still owns.
(
    select l.part from json_each(:leases) f cross join {lease} l
    where l.part = f.value ->> 'part' and l.epoch = f.value ->> 'epoch' and l.owner = :owner
)

-- fragment: is_unchanged
-- The records that have not changed since the fetcher read them.
id in (select u.value from json_each(:ids) u) and +status in ('pending', 'scheduled') and +part in {owned}

-- fragment: complete
update {record} set status = 'completed', completed_at = {now} where {is_unchanged}

-- fragment: delete
delete from {record} where {is_unchanged}

-- name: complete_records
{complete}

-- name: complete_records_autocommit
{complete}

-- name: delete_records
{delete}

-- name: delete_records_autocommit
{delete}

-- name: set_unhandled
update {record} set status = 'unhandled' where {is_unchanged}

-- name: split_records
update {record} set status = 'split' where {is_unchanged} returning id

-- name: add_deliveries
insert into {delivery} (record_id, part, key, handler, status, blocking, attempt, failure_count, first_failed_at,
    failed_at, due_at, error, error_kind, fingerprint)
select u.value ->> 'record_id', u.value ->> 'part', u.value ->> 'key', u.value ->> 'handler', u.value ->> 'status',
    u.value ->> 'blocking', u.value ->> 'attempt', u.value ->> 'failure_count', u.value ->> 'first_failed_at',
    case when u.value ->> 'error' is not null then {now} end,
    {now} + (u.value ->> 'due_in'), u.value ->> 'error', u.value ->> 'error_kind', u.value ->> 'fingerprint'
from json_each(:deliveries) u where true order by u.key
on conflict (record_id, handler) do nothing

-- name: change_deliveries
-- Changes only deliveries that have not changed since the fetcher read them.
update {delivery} as d set
    status = u.value ->> 'status', blocking = u.value ->> 'blocking', attempt = u.value ->> 'attempt',
    failure_count = u.value ->> 'failure_count', first_failed_at = u.value ->> 'first_failed_at',
    failed_at = case when u.value ->> 'error' is not null then {now} else d.failed_at end,
    due_at = {now} + (u.value ->> 'due_in'),
    finished_at = case when u.value ->> 'status' = 'completed' then {now} end,
    error = coalesce(u.value ->> 'error', d.error), error_kind = coalesce(u.value ->> 'error_kind', d.error_kind),
    fingerprint = coalesce(u.value ->> 'fingerprint', d.fingerprint)
from json_each(:deliveries) as u
where d.record_id = u.value ->> 'record_id' and d.handler = u.value ->> 'handler'
    and +d.attempt = u.value ->> 'expected_attempt' and +d.status in ('waiting', 'retrying') and +d.part in {owned}

-- name: add_failures
insert into {failure} (record_id, handler, attempt, kind, fingerprint, error)
select d.record_id, d.handler, u.value ->> 'attempt', u.value ->> 'kind', u.value ->> 'fingerprint', u.value ->> 'error'
from json_each(:failures) u cross join {delivery} d
where d.record_id = u.value ->> 'record_id' and d.handler = u.value ->> 'handler' and +d.part in {owned}
on conflict do nothing

-- name: delete_old_failures
delete from {failure} where rowid in (
    select f.rowid from json_each(:failures) u cross join {failure} f
    where f.record_id = u.value ->> 'record_id' and f.handler = u.value ->> 'handler'
        and f.attempt <= (u.value ->> 'attempt') - :kept and u.value ->> 'part' in {owned}
)

-- fragment: is_over
-- A split record is over when no delivery of it is open.
id in (select u.value from json_each(:ids) u) and +status = 'split' and not exists (
    select 1 from {delivery} d where d.record_id = {record}.id and d.status in ('waiting', 'retrying', 'failed')
)

-- fragment: deleted
-- Those of the given records that no longer exist.
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
where d.handler = :from and d.part in {owned} and not exists (
    select 1 from {delivery} e where e.record_id = d.record_id and e.handler = :to
)

-- name: requeue_unhandled
update {record} set status = 'pending' where id in (
    select id from {record} where status = 'unhandled' and part in {owned} and event = :event order by id limit :limit
)
