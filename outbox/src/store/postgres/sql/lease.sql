-- name: seed_partitions
-- $1 how many
insert into {lease} (part) select generate_series(0, $1 - 1) on conflict do nothing

-- name: heartbeat
-- $1 owner  $2 microseconds
-- First the instance, then its leases, as everywhere: two processes do not wait for each other.
with alive as (
    insert into {instance} as i (id, expires_at) values ($1, clock_timestamp() + $2 * interval '1 microsecond')
    on conflict (id) do update set expires_at = excluded.expires_at
    returning 1
)
update {lease} set expires_at = clock_timestamp() + $2 * interval '1 microsecond'
where owner = $1 and (select count(*) from alive) = 1

-- name: renew
-- $1 owner  $2 microseconds
update {lease} set expires_at = clock_timestamp() + $2 * interval '1 microsecond' where owner = $1

-- name: delete_instance
delete from {instance} where id = $1

-- name: free_leases
update {lease} set owner = null, expires_at = null where owner = $1

-- fragment: micros_left
(extract(epoch from expires_at - clock_timestamp()) * 1000000)::bigint

-- name: cluster_view
-- One statement, because it sees one moment.
select part, epoch, owner as instance, {micros_left} as micros_left, null::text as handler from {lease}
union all select null::smallint, null::bigint, id, {micros_left}, null::text from {instance}
union all select null::smallint, null::bigint, null::uuid, null::bigint, handler from {pause}

-- name: take_partitions
-- $1 owner  $2 microseconds  $3 partitions
-- A lease that another instance takes at this moment is skipped. The condition is checked again on a lease
-- that was taken a moment before.
update {lease} l set
    owner = $1, epoch = l.epoch + 1, expires_at = clock_timestamp() + $2 * interval '1 microsecond'
from (
    select part from {lease}
    where part = any($3) and (owner is null or expires_at <= clock_timestamp())
    order by part for update skip locked
) free
where l.part = free.part

-- name: release_leases
-- $1 partitions  $2 epochs  $3 owner  $4 reserved for microseconds
update {lease} l set owner = null, expires_at = clock_timestamp() + $4 * interval '1 microsecond'
from unnest($1::smallint[], $2::bigint[]) as f (part, epoch)
where l.part = f.part and l.epoch = f.epoch and l.owner = $3

-- name: lock_leases
-- $1 partitions  $2 epochs  $3 owner
select l.part from {lease} l join unnest($1::smallint[], $2::bigint[]) as f (part, epoch)
    on l.part = f.part and l.epoch = f.epoch
where l.owner = $3 order by l.part for share of l

-- name: reap_expired
-- $1 instance
with gone as (
    delete from {instance} where id = $1 and expires_at <= clock_timestamp() returning id
)
update {lease} set owner = null, expires_at = null where owner in (select id from gone)
