-- name: lock_session
-- When this process dies, the lock ends, and peers see that.
select get_lock(:session, 5)

-- name: register
insert ignore into {instance} (id, session, started_at, expires_at)
values (:owner, :session, utc_timestamp(6), utc_timestamp(6) + interval :micros microsecond)

-- name: advertise
update {instance} set session = :session where id = :owner

-- name: poll
-- `id > :highest_id`: deleted rows below are not scanned.
select
    coalesce((select max(id) from {record} where id > :highest_id), :highest_id) as highest_id,
    false as has_open_writers,
    (select concat_ws('/', count(owner), sum(epoch), (select count(*) from {instance}),
        (select group_concat(handler order by handler separator '/') from {pause})) from {lease}) as ownership_digest,
    (select count(*) from {instance} where id <> :owner) as peers,
    (select group_concat(session, '/', hex(id)) from {instance}
        where id <> :owner and if(session is null, 0, is_free_lock(session)) = 1) as lost_sessions,
    coalesce(is_used_lock(coalesce(:session, 'outbox:')) = connection_id(), false) as has_session_lock,
    coalesce((select session = :session from {instance} where id = :owner), false) as is_advertised

-- transaction: reap_lost
delete from {instance} where id = :instance and if(session is null, 0, is_free_lock(session)) = 1
-- then
{free_all}
