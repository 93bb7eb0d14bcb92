-- name: due_deliveries
-- ?1 partitions  ?2 handlers  ?3 clock offset  ?4 limit
select d.id, d.record_id, d.handler from json_each(?1) p cross join {delivery} d
where d.id in (
    select x.id from {delivery} x
    where x.part = p.value and x.status = 'retrying' and x.due_at <= {now} + ?3
        and x.handler in (select h.value from json_each(?2) h)
    order by x.due_at, x.id limit ?4
)
order by d.due_at, d.id limit ?4

-- fragment: is_followed
-- Whether another delivery of the lane of `d` waits behind it.
exists (
    select 1 from {delivery} f
    where f.blocking and f.part = d.part and f.key = d.key and f.handler = d.handler and f.id > d.id
)

-- name: load_deliveries
-- ?1 ids
select {record_columns}, {delivery_columns}, {is_followed} as followed
from json_each(?1) p cross join {delivery} d cross join {record} r
where d.id = p.value and d.status = 'retrying' and r.id = d.record_id
order by d.due_at, d.id

-- name: blocked_among
-- ?1 lanes
select l.value ->> 'part' as part, l.value ->> 'key' as key, l.value ->> 'handler' as handler from json_each(?1) l
where exists (
    select 1 from {delivery} d
    where d.blocking and d.part = l.value ->> 'part' and d.key = l.value ->> 'key'
        and d.handler = l.value ->> 'handler'
)

-- name: blocking_keys
-- ?1 partition  ?2 keys per partition
-- One partition at a time: SQLite has no lateral join, and a statement costs next to nothing.
select distinct d.part, d.key from {delivery} d where d.blocking and d.part = ?1
order by d.part, d.key limit ?2

-- name: lane_heads
-- ?1 lanes  ?2 per lane
select {record_columns}, {delivery_columns}, {is_followed} as followed
from json_each(?1) l cross join {delivery} d cross join {record} r
where d.id in (
    select x.id from {delivery} x
    where x.blocking and x.part = l.value ->> 'part' and x.key = l.value ->> 'key'
        and x.handler = l.value ->> 'handler'
    order by x.id limit ?2
) and r.id = d.record_id
order by l.key, d.id

-- name: runnable_oldest_first
-- ?1 partitions  ?2 handlers  ?3 limit
select d.part, d.key, d.handler from {delivery} d
where d.part in (select p.value from json_each(?1) p) and d.handler in (select h.value from json_each(?2) h)
    and d.status = 'waiting' and d.blocking and not exists (
        select 1 from {delivery} e
        where e.blocking and e.part = d.part and e.key = d.key and e.handler = d.handler and e.id < d.id
    )
order by d.id limit ?3

-- name: runnable_every_lane
-- ?1 partitions  ?2 handlers  ?3 limit
select d.part, d.key, d.handler from (
    select min(id) as id from {delivery}
    where blocking and part in (select p.value from json_each(?1) p) and handler in (select h.value from json_each(?2) h)
    group by part, key, handler
) first join {delivery} d on d.id = first.id
where d.status = 'waiting'
order by d.id limit ?3
