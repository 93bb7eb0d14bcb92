-- name: pending_records
-- ?1 partitions and ids to read after  ?2 per partition  ?3 in all  ?4 ids in memory
-- `in` with a limit inside: one short walk of the index per partition, and the ids that it finds are looked up
-- in their order. `cross join`: in this order, whatever the statistics say.
select {record_columns} from json_each(?1) p cross join {record} r
where r.id in (
    select x.id from {record} x
    where x.part = p.value ->> 'part' and x.status = 'pending'
        and x.id > p.value ->> 'after' and x.id not in (select value from json_each(?4))
    order by x.id limit ?2
) limit ?3

-- name: due_records
-- ?1 partitions  ?2 clock offset  ?3 limit
select {record_columns} from json_each(?1) p cross join {record} r
where r.id in (
    select x.id from {record} x
    where x.part = p.value and x.status = 'scheduled' and x.due_at <= {now} + ?2
    order by x.due_at, x.id limit ?3
) order by r.due_at, r.id limit ?3

-- name: next_due
-- ?1 partitions  ?2 handlers  ?3 clock offset
select min(due_at) - {now} - ?3 from (
    select (
        select r.due_at from {record} r where r.part = p.value and r.status = 'scheduled' order by r.due_at limit 1
    ) as due_at from json_each(?1) p
    union all
    select (
        select d.due_at from {delivery} d
        where d.part = p.value and d.status = 'retrying' and d.handler in (select h.value from json_each(?2) h)
        order by d.due_at limit 1
    ) from json_each(?1) p
)

-- name: unhandled_events
-- ?1 partitions
select distinct event from {record}
where status = 'unhandled' and part in (select p.value from json_each(?1) p)
