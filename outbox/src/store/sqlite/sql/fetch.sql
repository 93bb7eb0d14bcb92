-- name: pending_records
-- `in` with a limit inside: one short scan of the index per partition. The ids that it finds are looked up in their
-- order. `cross join` fixes the order of the join, whatever the statistics are.
select {record_columns} from json_each(:pages) p cross join {record} r
where r.id in (
    select x.id from {record} x
    where x.part = p.value ->> 'part' and x.status = 'pending'
        and x.id > p.value ->> 'after' and x.id not in (select value from json_each(:in_memory))
    order by x.id limit :per_partition
) limit :limit

-- name: due_records
select {record_columns} from json_each(:partitions) p cross join {record} r
where r.id in (
    select x.id from {record} x
    where x.part = p.value and x.status = 'scheduled' and x.due_at <= {now} + :offset
    order by x.due_at, x.id limit :limit
) order by r.due_at, r.id limit :limit

-- name: next_due
select min(due_at) - {now} - :offset from (
    select (
        select r.due_at from {record} r where r.part = p.value and r.status = 'scheduled' order by r.due_at limit 1
    ) as due_at from json_each(:partitions) p
    union all
    select (
        select d.due_at from {delivery} d
        where d.part = p.value and d.status = 'retrying' and d.handler in (select h.value from json_each(:handlers) h)
        order by d.due_at limit 1
    ) from json_each(:partitions) p
)

-- name: unhandled_events
select distinct event from {record}
where status = 'unhandled' and part in (select p.value from json_each(:partitions) p)
