-- name: pending_records
-- Lateral: one short scan of the index per partition. The condition and the order use both columns, because only
-- that index has both. Otherwise, if most records are in a few partitions, the planner may scan the primary key
-- through all of them for each empty partition. The ids in memory are hashed once.
select r.* from unnest(:pages.part::smallint[], :pages.after::bigint[]) as p (part, after)
cross join lateral (
    select {record_columns} from {record} r
    where (r.part, r.id) > (p.part, p.after) and r.part <= p.part and r.status = 'pending'
        and r.id not in (select unnest(:in_memory::bigint[]))
    order by r.part, r.id limit :per_partition
) r limit :limit

-- name: due_records
-- `statement_timestamp()`, because `clock_timestamp()` changes during the statement and so cannot use the index.
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
-- A transaction takes this lock before it gets an id from the sequence, and releases it after its rows are visible.
-- The highest id of the sequence is read first: it is the outer side of a nested loop. A role that may write the
-- table need not have the right to read its sequence.
select s.highest_drawn, l.virtualtransaction
from (
    select case when has_sequence_privilege(id, 'usage, select') then coalesce(pg_sequence_last_value(id), 0) end as highest_drawn
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
