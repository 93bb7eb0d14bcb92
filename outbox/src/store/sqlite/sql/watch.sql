-- name: poll
select
    coalesce((select max(id) from {record} where id > :highest), :highest) as highest,
    false as writing,
    (select count(owner) || '/' || sum(epoch) || '/' || (select count(*) from {instance}) || '/' ||
        (select coalesce(group_concat(handler, '/'), '') from {pause}) from {lease}) as leases,
    (select count(*) from {instance} where id <> :owner) as peers,
    null as gone,
    false as held,
    false as shown
