-- name: due_deliveries
select d.id, d.record_id, d.handler from unnest(:partitions::smallint[]) as p (part)
cross join lateral (
    select d.id, d.record_id, d.handler, d.due_at from {delivery} d
    where d.part = p.part and d.status = 'retrying' and d.handler = any(:handlers)
        and d.due_at <= statement_timestamp() + :offset * interval '1 microsecond'
    order by d.due_at, d.id limit :limit
) d order by d.due_at, d.id limit :limit

-- name: load_deliveries
-- The ids are a subselect. Otherwise the planner would estimate each id, at each execution.
select {record_columns}, {delivery_columns}, exists (
    select 1 from {delivery} f
    where f.blocking and f.part = d.part and f.key = d.key and f.handler = d.handler and f.id > d.id
) as has_followers
from {delivery} d join {record} r on r.id = d.record_id
where d.id = any((select :ids::bigint[])::bigint[]) and d.status = 'retrying'
order by d.due_at, d.id

-- name: blocked_among
select l.part, l.key, l.handler from unnest(:lanes.part::smallint[], :lanes.key::text[], :lanes.handler::text[]) as l (part, key, handler)
where exists (
    select 1 from {delivery} d
    where d.blocking and d.part = l.part and d.key = l.key and d.handler = l.handler
)

-- name: blocking_keys
select d.part, d.key from unnest(:partitions::smallint[]) as p (part)
cross join lateral (
    select distinct d.part, d.key from {delivery} d where d.blocking and d.part = p.part
    order by d.part, d.key limit :per_partition
) d

-- name: lane_heads
-- The condition and the order use all columns of the index of lanes. With an order by the id alone, the planner
-- may scan the primary key for the first delivery of a lane, through all rows of a long lane.
-- The query reads one delivery more than `per_lane`, to know whether another delivery follows the last one.
select {record_columns}, {delivery_columns}, d.has_followers
from unnest(:lanes.part::smallint[], :lanes.key::text[], :lanes.handler::text[]) with ordinality as l (part, key, handler, place)
cross join lateral (
    select d.*, lead(d.id) over (order by d.id) is not null as has_followers from (
        select * from {delivery} d
        where d.blocking and (d.part, d.key, d.handler) >= (l.part, l.key, l.handler)
            and (d.part, d.key, d.handler) <= (l.part, l.key, l.handler)
        order by d.part, d.key, d.handler, d.id limit :per_lane + 1
    ) d order by d.id limit :per_lane
) d
join {record} r on r.id = d.record_id
order by l.place, d.id

-- name: runnable_oldest_first
-- The condition and the order use the same columns as in `lane_heads`.
select d.part, d.key, d.handler from {delivery} d
where d.status = 'waiting' and d.blocking and d.part = any(:partitions) and d.handler = any(:handlers) and d.id = (
    select e.id from {delivery} e
    where e.blocking and (e.part, e.key, e.handler) >= (d.part, d.key, d.handler)
        and (e.part, e.key, e.handler) <= (d.part, d.key, d.handler)
    order by e.part, e.key, e.handler, e.id limit 1
)
order by d.id limit :limit

-- name: runnable_every_lane
-- Lateral: the scan of each partition is in the order of the index. The planner then expects so few lanes that
-- it does not read the whole table to find their rows.
select d.part, d.key, d.handler from unnest(:partitions::smallint[]) as p (part)
cross join lateral (
    select min(e.id) as id from {delivery} e where e.blocking and e.part = p.part and e.handler = any(:handlers)
    group by e.part, e.key, e.handler
) first
join {delivery} d on d.id = first.id
where d.status = 'waiting'
order by d.id limit :limit
