-- Every statement of an owner has the fence: the leases and the owner.

-- fragment: owned
-- The partitions that this process still owns. The array is uncorrelated, so PostgreSQL evaluates it once and finds
-- the rows to change by their primary key.
any(array(
    select l.part from {lease} l join unnest(:leases.part::smallint[], :leases.epoch::bigint[]) as f (part, epoch)
        on l.part = f.part and l.epoch = f.epoch
    where l.owner = :owner
))

-- fragment: is_unchanged
-- The records that have not changed since the fetcher read them. The ids are a subselect. Otherwise the planner
-- would estimate each id, at each execution.
id = any((select :ids::bigint[])::bigint[]) and status in ('pending', 'scheduled') and part = {owned}

-- fragment: relax_commit
-- Only for the transaction of the statement: if the database crashes, it may lose the batch, and the records are
-- delivered again. Never for the session, which a proxy may share with transactions of other programs.
set_config('synchronous_commit', 'off', true)

-- name: relax_transaction
-- The timeout ends the transaction of a frozen process, which would otherwise keep its rows locked.
select {relax_commit}, set_config('idle_in_transaction_session_timeout', '5s', true)

-- name: complete_records
update {record} set status = 'completed', completed_at = clock_timestamp() where {is_unchanged}

-- name: delete_records
delete from {record} where {is_unchanged}

-- name: complete_records_autocommit
update {record} set status = 'completed', completed_at = clock_timestamp()
where {is_unchanged} and (select {relax_commit}) = 'off'

-- name: delete_records_autocommit
delete from {record} where {is_unchanged} and (select {relax_commit}) = 'off'

-- name: set_unhandled
update {record} set status = 'unhandled' where {is_unchanged}

-- name: split_records
-- Adds a delivery for each handler that did not finish, if the record has not changed since the fetcher read it.
with split as (
    update {record} set status = 'split' where {is_unchanged} returning id
)
insert into {delivery} (record_id, part, key, handler, status, blocking, attempt, failure_count, first_failed_at,
    failed_at, due_at, error, error_kind, fingerprint)
select u.record_id, u.part, u.key, u.handler, u.status, u.blocking, u.attempt, u.failure_count,
    timestamptz 'epoch' + u.first_failed_at * interval '1 microsecond',
    case when u.error is not null then clock_timestamp() end,
    clock_timestamp() + u.due_in * interval '1 microsecond', u.error, u.error_kind, u.fingerprint
from rows from (json_to_recordset(:deliveries::json) as (
    record_id bigint, part smallint, key text, handler text, status text, blocking boolean, attempt bigint,
    failure_count bigint, first_failed_at bigint, due_in bigint, error text, error_kind text, fingerprint text
)) with ordinality as u (record_id, part, key, handler, status, blocking, attempt, failure_count, first_failed_at,
    due_in, error, error_kind, fingerprint, place)
join split on split.id = u.record_id
order by u.place
on conflict (record_id, handler) do nothing

-- name: change_deliveries
-- Changes only deliveries that have not changed since the fetcher read them.
update {delivery} d set
    status = u.status, blocking = u.blocking, attempt = u.attempt, failure_count = u.failure_count,
    first_failed_at = timestamptz 'epoch' + u.first_failed_at * interval '1 microsecond',
    failed_at = case when u.error is not null then clock_timestamp() else d.failed_at end,
    due_at = clock_timestamp() + u.due_in * interval '1 microsecond',
    finished_at = case when u.status = 'completed' then clock_timestamp() end,
    error = coalesce(u.error, d.error), error_kind = coalesce(u.error_kind, d.error_kind),
    fingerprint = coalesce(u.fingerprint, d.fingerprint)
from json_to_recordset(:deliveries::json) as u (
    record_id bigint, handler text, status text, blocking boolean, attempt bigint, failure_count bigint,
    first_failed_at bigint, due_in bigint, expected_attempt bigint, error text, error_kind text, fingerprint text
)
where d.record_id = u.record_id and d.handler = u.handler and d.attempt = u.expected_attempt
    and d.status in ('waiting', 'retrying') and d.part = {owned}

-- name: add_failures
insert into {failure} (record_id, handler, attempt, kind, fingerprint, error)
select d.record_id, d.handler, u.attempt, u.kind, u.fingerprint, u.error
from json_to_recordset(:failures::json) as u (
    record_id bigint, handler text, attempt bigint, kind text, fingerprint text, error text
)
join {delivery} d on d.record_id = u.record_id and d.handler = u.handler
where d.part = {owned}
on conflict do nothing

-- name: delete_old_failures
delete from {failure} f using json_to_recordset(:failures::json) as u (
    record_id bigint, part smallint, handler text, attempt bigint
)
where f.record_id = u.record_id and f.handler = u.handler and f.attempt <= u.attempt - :kept and u.part = {owned}

-- name: lock_split_records
-- Two transactions that complete deliveries of one record at the same time must see each other's changes.
select id from {record} where id = any(:ids) and status = 'split' order by id for update

-- fragment: is_over
-- A split record is over when no delivery of it is open.
r.id = any(:ids) and r.status = 'split' and not exists (
    select 1 from {delivery} d where d.record_id = r.id and d.status in ('waiting', 'retrying', 'failed')
)

-- name: complete_split_records
update {record} r set status = 'completed', completed_at = clock_timestamp() where {is_over}

-- name: delete_split_records
with deleted as (delete from {record} r where {is_over} returning r.id),
    deliveries as (delete from {delivery} where record_id in (select id from deleted))
delete from {failure} where record_id in (select id from deleted)

-- name: rename_handler
update {delivery} d set handler = :to
where d.handler = :from and d.part = {owned} and not exists (
    select 1 from {delivery} e where e.record_id = d.record_id and e.handler = :to
)

-- name: requeue_unhandled
update {record} set status = 'pending' where id = any(array(
    select id from {record} where status = 'unhandled' and part = {owned} and event = :event order by id limit :limit
)) and status = 'unhandled'
