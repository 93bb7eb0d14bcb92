-- name: register
-- instance, session, microseconds
insert ignore into {instance} (id, session, started_at, expires_at)
values (?, ?, utc_timestamp(6), utc_timestamp(6) + interval ? microsecond)

-- name: advertise
-- session, instance
update {instance} set session = ? where id = ?

-- name: poll
-- highest id that is known, twice; instance, twice; session, twice; instance
-- `id > ?`: rows below that were deleted are not walked.
select
    coalesce((select max(id) from {record} where id > ?), ?) as highest,
    false as writing,
    (select concat_ws('/', count(owner), sum(epoch), (select count(*) from {instance}),
        (select group_concat(handler order by handler separator '/') from {pause})) from {lease}) as leases,
    (select count(*) from {instance} where id <> ?) as peers,
    (select group_concat(session, '/', hex(id)) from {instance}
        where id <> ? and if(session is null, 0, is_free_lock(session)) = 1) as gone,
    coalesce(is_used_lock(coalesce(?, 'outbox:')) = connection_id(), false) as held,
    coalesce((select session = ? from {instance} where id = ?), false) as shown

-- name: delete_lost_instance
-- instance
delete from {instance} where id = ? and if(session is null, 0, is_free_lock(session)) = 1
