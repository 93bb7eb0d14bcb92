-- name: channel
-- A name, not a statement: the channel on which processes notify each other.
{channel}

-- name: lock_session
-- When this process dies, the lock ends, and peers see that.
select pg_advisory_lock(:session)

-- name: unlock_session
select pg_advisory_unlock_all()

-- name: register
insert into {instance} (id, session, expires_at)
values (:owner, :session, clock_timestamp() + :micros * interval '1 microsecond') on conflict do nothing

-- name: advertise
update {instance} set session = :session, listening = false where id = :owner

-- fragment: this_database
database = (select oid from pg_database where datname = current_database())

-- name: poll
-- `pg_locks` is read once. `id > :highest_id`: deleted rows below are not scanned.
with locks as materialized (
    select locktype, relation, mode, pid, (classid::bigint << 32) | objid::bigint as key from pg_locks
    where granted and locktype in ('relation', 'advisory')
        and {this_database}
),
lost as (
    select id, session::text from {instance} where session is not null and id <> :owner
        and session not in (select key from locks where locktype = 'advisory')
)
select
    coalesce((select max(id) from {record} where id > :highest_id), :highest_id) as highest_id,
    exists (
        select 1 from locks where locktype = 'relation' and relation = '{record}'::regclass
            and mode = 'RowExclusiveLock' and pid is distinct from pg_backend_pid()
    ) as has_open_writers,
    (select concat_ws('/', count(owner), sum(epoch), (select count(*) from {instance}),
        (select string_agg(handler, '/' order by handler) from {pause})) from {lease}) as ownership_digest,
    (select count(*) from {instance} where id <> :owner) as peers,
    (select string_agg(session || '/' || id, ',') from lost) as lost_sessions,
    exists (select 1 from locks where locktype = 'advisory' and key = :session and pid = pg_backend_pid()) as has_session_lock,
    coalesce((select session = :session from {instance} where id = :owner), false) as is_advertised

-- name: reap_lost
-- `count`: with `not exists`, a row that changes during the statement would be checked with its old session.
with reaped as (
    delete from {instance} i where id = :instance and session is not null and 0 = (
        select count(*) from pg_locks where granted and locktype = 'advisory'
            and {this_database}
            and (classid::bigint << 32) | objid::bigint = i.session
    )
    returning id
)
update {lease} set owner = null, expires_at = null where owner in (select id from reaped)

-- name: set_listening
update {instance} set listening = :listening where id = :owner

-- name: notify_peers
-- `watch.rs` parses the message.
select pg_notify('{channel}', 'leases')
