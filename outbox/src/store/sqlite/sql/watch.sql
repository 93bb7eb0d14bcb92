-- name: poll
-- ?1 highest id that is known  ?2 instance
select
    coalesce((select max(id) from {record} where id > ?1), ?1) as highest,
    false as writing,
    (select count(owner) || '/' || sum(epoch) || '/' || (select count(*) from {instance}) || '/' ||
        (select coalesce(group_concat(handler, '/'), '') from {pause}) from {lease}) as leases,
    (select count(*) from {instance} where id <> ?2) as peers,
    null as gone,
    false as held,
    false as shown
