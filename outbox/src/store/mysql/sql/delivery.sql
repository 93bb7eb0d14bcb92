-- fragment: given_lanes
json_table(:lanes, '$[*]' columns (
    place for ordinality,
    part smallint path '$.part',
    record_key varchar(255) character set utf8mb4 path '$.key',
    handler varchar(255) character set utf8mb4 path '$.handler'
)) l

-- name: due_deliveries
select id, record_id, handler from ([[select id, record_id, handler, due_at from {delivery}
where status = 'retrying' and part = :partitions.each and due_at <= utc_timestamp(6) + interval :offset microsecond
    and json_contains(:handlers, json_quote(handler))
order by due_at, id limit :limit]]) x order by due_at, id limit :limit

-- fragment: has_followers
-- Whether the lane of delivery `d` has a later delivery.
exists (
    select 1 from {delivery} f
    where f.blocking = 1 and f.part = d.part and f.`key` = d.`key` and f.handler = d.handler and f.id > d.id
)

-- name: load_deliveries
select {record_columns}, {delivery_columns}, {has_followers} as has_followers
from json_table(:ids, '$[*]' columns (id bigint path '$')) x
straight_join {delivery} d on d.id = x.id and d.status = 'retrying'
straight_join {record} r on r.id = d.record_id
order by d.due_at, d.id

-- name: blocked_among
select l.part, cast(l.record_key as binary) as `key`, l.handler from {given_lanes}
where exists (
    select 1 from {delivery} d
    where d.blocking = 1 and d.part = l.part and d.`key` = cast(l.record_key as binary) and d.handler = l.handler
)

-- name: blocking_keys
[[select distinct part, `key` from {delivery} force index ({unqualified delivery_lane})
where blocking = 1 and part = :partitions.each order by part, `key` limit :per_partition]]

-- name: lane_heads
select {record_columns}, {delivery_columns}, {has_followers} as has_followers
from ([[select :lanes.place as place, id from {delivery}
where blocking = 1 and part = :lanes.part and `key` = :lanes.key and handler = :lanes.handler order by id limit :per_lane]]) x
straight_join {delivery} d on d.id = x.id
straight_join {record} r on r.id = d.record_id
order by x.place, x.id

-- name: runnable_oldest_first
-- The index is forced: otherwise the server may read the whole table in the order of its ids.
select d.part, d.`key`, d.handler from {delivery} d force index ({unqualified delivery_waiting})
where d.status = 'waiting' and d.blocking = 1 and d.part in ([[:partitions.each]]) and d.handler in ([[:handlers.each]]) and not exists (
    select 1 from {delivery} e
    where e.blocking = 1 and e.part = d.part and e.`key` = d.`key` and e.handler = d.handler and e.id < d.id
)
order by d.id limit :limit

-- name: runnable_every_lane
select d.part, d.`key`, d.handler from (
    select min(id) as id from {delivery} force index ({unqualified delivery_lane})
    where blocking = 1 and part in ([[:partitions.each]]) and handler in ([[:handlers.each]])
    group by part, `key`, handler
) first straight_join {delivery} d force index (primary) on d.id = first.id
where d.status = 'waiting'
order by d.id limit :limit
