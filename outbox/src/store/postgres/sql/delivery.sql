-- name: due_deliveries
select d.id, d.record_id, d.handler from unnest(:partitions::smallint[]) as p (part)
cross join lateral (
    select d.id, d.record_id, d.handler, d.due_at from {delivery} d
    where d.part = p.part and d.status = 'retrying' and d.handler = any(:handlers)
        and d.due_at <= statement_timestamp() + :offset * interval '1 microsecond'
    order by d.due_at, d.id limit :limit
) d order by d.due_at, d.id limit :limit

-- name: load_deliveries
-- As a subselect: the planner would estimate each id by itself, at each execution.
select {record_columns}, {delivery_columns}, exists (
    select 1 from {delivery} f
    where f.blocking and f.part = d.part and f.key = d.key and f.handler = d.handler and f.id > d.id
) as followed
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
-- All columns of the index of lanes are compared and ordered by. Ordered by the id alone, the planner would
-- look for the first delivery of a lane along the primary key, through all of the longest lane.
-- One delivery more than asked for tells whether another follows the last one.
select {record_columns}, {delivery_columns}, d.followed
from unnest(:lanes.part::smallint[], :lanes.key::text[], :lanes.handler::text[]) with ordinality as l (part, key, handler, place)
cross join lateral (
    select d.*, lead(d.id) over (order by d.id) is not null as followed from (
        select * from {delivery} d
        where d.blocking and (d.part, d.key, d.handler) >= (l.part, l.key, l.handler)
            and (d.part, d.key, d.handler) <= (l.part, l.key, l.handler)
        order by d.part, d.key, d.handler, d.id limit :per_lane + 1
    ) d order by d.id limit :per_lane
) d
join {record} r on r.id = d.record_id
order by l.place, d.id

-- name: runnable_oldest_first
-- Compared and ordered as in `lane_heads`.
select d.part, d.key, d.handler from {delivery} d
where d.status = 'waiting' and d.blocking and d.part = any(:partitions) and d.handler = any(:handlers) and d.id = (
    select e.id from {delivery} e
    where e.blocking and (e.part, e.key, e.handler) >= (d.part, d.key, d.handler)
        and (e.part, e.key, e.handler) <= (d.part, d.key, d.handler)
    order by e.part, e.key, e.handler, e.id limit 1
)
order by d.id limit :limit

-- name: runnable_every_lane
-- Lateral: the walk of each partition is in the order of the index, and the planner expects few enough lanes
-- of it that it does not read the whole table to find their rows.
select d.part, d.key, d.handler from unnest(:partitions::smallint[]) as p (part)
cross join lateral (
    select min(e.id) as id from {delivery} e where e.blocking and e.part = p.part and e.handler = any(:handlers)
    group by e.part, e.key, e.handler
) first
join {delivery} d on d.id = first.id
where d.status = 'waiting'
order by d.id limit :limit
