-- name: poll
select
    coalesce((select max(id) from {record} where id > :highest_id), :highest_id) as highest_id,
    false as has_open_writers,
    (select count(owner) || '/' || sum(epoch) || '/' || (select count(*) from {instance}) || '/' ||
        (select coalesce(group_concat(handler, '/'), '') from {pause}) from {lease}) as ownership_digest,
    (select count(*) from {instance} where id <> :owner) as peers,
    null as lost_sessions,
    false as has_session_lock,
    false as is_advertised
