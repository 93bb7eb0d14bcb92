-- name: lock_session
-- Peers see when the lock ends, and so that this process has died.
select get_lock(:session, 5)

-- name: register
insert ignore into {instance} (id, session, started_at, expires_at)
values (:owner, :session, utc_timestamp(6), utc_timestamp(6) + interval :micros microsecond)

-- name: advertise
update {instance} set session = :session where id = :owner

-- name: poll
-- `id > :highest`: rows below that were deleted are not walked.
select
    coalesce((select max(id) from {record} where id > :highest), :highest) as highest,
    false as writing,
    (select concat_ws('/', count(owner), sum(epoch), (select count(*) from {instance}),
        (select group_concat(handler order by handler separator '/') from {pause})) from {lease}) as leases,
    (select count(*) from {instance} where id <> :owner) as peers,
    (select group_concat(session, '/', hex(id)) from {instance}
        where id <> :owner and if(session is null, 0, is_free_lock(session)) = 1) as gone,
    coalesce(is_used_lock(coalesce(:session, 'outbox:')) = connection_id(), false) as held,
    coalesce((select session = :session from {instance} where id = :owner), false) as shown

-- transaction: reap_lost
delete from {instance} where id = :instance and if(session is null, 0, is_free_lock(session)) = 1
-- then
{free_all}
