-- name: due_deliveries
select d.id, d.record_id, d.handler from json_each(:partitions) p cross join {delivery} d
where d.id in (
    select x.id from {delivery} x
    where x.part = p.value and x.status = 'retrying' and x.due_at <= {now} + :offset
        and x.handler in (select h.value from json_each(:handlers) h)
    order by x.due_at, x.id limit :limit
)
order by d.due_at, d.id limit :limit

-- fragment: has_followers
-- Whether the lane of delivery `d` has a later delivery.
exists (
    select 1 from {delivery} f
    where f.blocking and f.part = d.part and f.key = d.key and f.handler = d.handler and f.id > d.id
)

-- name: load_deliveries
select {record_columns}, {delivery_columns}, {has_followers} as has_followers
from json_each(:ids) p cross join {delivery} d cross join {record} r
where d.id = p.value and d.status = 'retrying' and r.id = d.record_id
order by d.due_at, d.id

-- name: blocked_among
select l.value ->> 'part' as part, l.value ->> 'key' as key, l.value ->> 'handler' as handler from json_each(:lanes) l
where exists (
    select 1 from {delivery} d
    where d.blocking and d.part = l.value ->> 'part' and d.key = l.value ->> 'key'
        and d.handler = l.value ->> 'handler'
)

-- name: blocking_keys
-- Finds each key by its first delivery: one short scan of the index per partition.
select d.part, d.key from json_each(:partitions) p cross join {delivery} d
where d.id in (
    select min(x.id) from {delivery} x where x.blocking and x.part = p.value
    group by x.key order by x.key limit :per_partition
)

-- name: lane_heads
select {record_columns}, {delivery_columns}, {has_followers} as has_followers
from json_each(:lanes) l cross join {delivery} d cross join {record} r
where d.id in (
    select x.id from {delivery} x
    where x.blocking and x.part = l.value ->> 'part' and x.key = l.value ->> 'key'
        and x.handler = l.value ->> 'handler'
    order by x.id limit :per_lane
) and r.id = d.record_id
order by l.key, d.id

-- name: runnable_oldest_first
select d.part, d.key, d.handler from {delivery} d
where d.part in (select p.value from json_each(:partitions) p) and d.handler in (select h.value from json_each(:handlers) h)
    and d.status = 'waiting' and d.blocking and not exists (
        select 1 from {delivery} e
        where e.blocking and e.part = d.part and e.key = d.key and e.handler = d.handler and e.id < d.id
    )
order by d.id limit :limit

-- name: runnable_every_lane
select d.part, d.key, d.handler from (
    select min(id) as id from {delivery}
    where blocking and part in (select p.value from json_each(:partitions) p) and handler in (select h.value from json_each(:handlers) h)
    group by part, key, handler
) first join {delivery} d on d.id = first.id
where d.status = 'waiting'
order by d.id limit :limit
