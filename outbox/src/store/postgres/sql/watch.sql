-- name: channel
-- A name, not a statement: the channel on which processes notify each other.
{channel}

-- name: record_table
-- A name, not a statement: the parameter of statements that look for locks on this table.
{record}

-- name: register
-- $1 instance  $2 session  $3 microseconds
insert into {instance} (id, session, expires_at)
values ($1, $2, clock_timestamp() + $3 * interval '1 microsecond') on conflict do nothing

-- name: advertise
-- $1 instance  $2 session
update {instance} set session = $2, listening = false where id = $1

-- fragment: this_database
database = (select oid from pg_database where datname = current_database())

-- name: poll
-- $1 highest id that is known  $2 the table of records  $3 instance  $4 session
-- Locks are read once. `id > $1`: rows below that were deleted are not walked.
with locks as materialized (
    select locktype, relation, mode, pid, (classid::bigint << 32) | objid::bigint as key from pg_locks
    where granted and locktype in ('relation', 'advisory')
        and {this_database}
),
gone as (
    select id, session::text from {instance} where session is not null and id <> $3
        and session not in (select key from locks where locktype = 'advisory')
)
select
    coalesce((select max(id) from {record} where id > $1), $1) as highest,
    exists (
        select 1 from locks where locktype = 'relation' and relation = $2::regclass
            and mode = 'RowExclusiveLock' and pid is distinct from pg_backend_pid()
    ) as writing,
    (select concat_ws('/', count(owner), sum(epoch), (select count(*) from {instance}),
        (select string_agg(handler, '/' order by handler) from {pause})) from {lease}) as leases,
    (select count(*) from {instance} where id <> $3) as peers,
    (select string_agg(session || '/' || id, ',') from gone) as gone,
    exists (select 1 from locks where locktype = 'advisory' and key = $4 and pid = pg_backend_pid()) as held,
    coalesce((select session = $4 from {instance} where id = $3), false) as shown

-- name: reap_lost
-- $1 instance
-- `count`: with `not exists` a row that is changed at this moment would be judged by the session that it had before.
with gone as (
    delete from {instance} i where id = $1 and session is not null and 0 = (
        select count(*) from pg_locks where granted and locktype = 'advisory'
            and {this_database}
            and (classid::bigint << 32) | objid::bigint = i.session
    )
    returning id
)
update {lease} set owner = null, expires_at = null where owner in (select id from gone)

-- name: set_listening
-- $1 instance  $2 listening
update {instance} set listening = $2 where id = $1

-- name: notify_peers
-- $1 channel  $2 message
select pg_notify($1, $2)
