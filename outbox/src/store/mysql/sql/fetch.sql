-- fragment: page
-- The index is forced because the index of due times has the ids too, in another order.
from {record} r force index ({unqualified record_pending})
where r.status = 'pending' and r.part = :pages.part and r.id > :pages.after order by r.id limit :limits.each

-- name: pending_page
[[select {record_columns} {page}]]

-- name: pending_pages
-- The union is not a table in `from`: the server would write such a table to the disk first.
[[select {record_columns} {page}]]
limit :limit

-- name: pending_ids
[[select r.part, r.id {page}]]

-- name: records_of_ids
select {record_columns} from json_table(:ids, '$[*]' columns (place for ordinality, id bigint path '$')) x
straight_join {record} r on r.id = x.id
where r.status = 'pending'
order by x.place

-- name: due_records
select {record_columns} from (select id, due_at from ([[select id, due_at from {record}
where status = 'scheduled' and part = :partitions.each and due_at <= utc_timestamp(6) + interval :offset microsecond
order by due_at, id limit :limit]]) x order by due_at, id limit :limit) x
straight_join {record} r on r.id = x.id
order by x.due_at, x.id

-- name: next_due
select timestampdiff(microsecond, utc_timestamp(6), min(due_at)) - :offset from (
    select (
        select r.due_at from {record} r where r.status = 'scheduled' and r.part = p.part order by r.due_at limit 1
    ) as due_at from json_table(:partitions, '$[*]' columns (part smallint path '$')) p
    union all
    select (
        select d.due_at from {delivery} d
        where d.status = 'retrying' and d.part = p.part and json_contains(:handlers, json_quote(d.handler))
        order by d.due_at limit 1
    ) from json_table(:partitions, '$[*]' columns (part smallint path '$')) p
) x

-- name: database_time
select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))

-- name: unhandled_events
select distinct event from {record} where status = 'unhandled' and part in ([[:partitions.each]])
