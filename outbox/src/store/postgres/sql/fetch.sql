-- name: pending_records
-- Lateral: one short walk of the index per partition. Both columns are compared and ordered by, because only
-- that index has both: where most records are of a few partitions, the planner would rather walk the primary
-- key, through all of them, for each partition that is empty. The ids in memory are hashed once for all.
select r.* from unnest(:pages.part::smallint[], :pages.after::bigint[]) as p (part, after)
cross join lateral (
    select {record_columns} from {record} r
    where (r.part, r.id) > (p.part, p.after) and r.part <= p.part and r.status = 'pending'
        and r.id not in (select unnest(:in_memory::bigint[]))
    order by r.part, r.id limit :per_partition
) r limit :limit

-- name: due_records
-- The time of the statement: `clock_timestamp()` changes while the index is read, so the index could not be used.
select r.* from unnest(:partitions::smallint[]) as p (part)
cross join lateral (
    select {record_columns}, r.due_at from {record} r
    where r.part = p.part and r.status = 'scheduled'
        and r.due_at <= statement_timestamp() + :offset * interval '1 microsecond'
    order by r.due_at, r.id limit :limit
) r order by r.due_at, r.id limit :limit

-- name: next_due
select (extract(epoch from min(least(
    (select r.due_at from {record} r where r.part = p.part and r.status = 'scheduled' order by r.due_at limit 1),
    (select d.due_at from {delivery} d where d.part = p.part and d.status = 'retrying' and d.handler = any(:handlers)
        order by d.due_at limit 1)
)) - clock_timestamp()) * 1000000)::bigint - :offset
from unnest(:partitions::smallint[]) as p (part)

-- name: open_writers
-- A transaction takes this lock before it draws an id, and releases it after its rows can be seen. The highest
-- drawn id is read first: the outer side of a nested loop. A role that may write the table need not be
-- allowed to read its sequence.
select s.drawn, l.virtualtransaction
from (
    select case when has_sequence_privilege(id, 'usage, select') then coalesce(pg_sequence_last_value(id), 0) end as drawn
    from cast(pg_get_serial_sequence('{record}', 'id') as regclass) as id
    offset 0
) s
left join lateral (
    select virtualtransaction from pg_locks
    where locktype = 'relation' and relation = '{record}'::regclass and mode = 'RowExclusiveLock' and granted
        and pid is distinct from pg_backend_pid()
        and database = (select oid from pg_database where datname = current_database())
) l on true

-- name: unhandled_events
select distinct event from {record} where status = 'unhandled' and part = any(:partitions)
