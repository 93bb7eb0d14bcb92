-- name: partition_count
select count(*) from {lease}

-- name: seed_partitions
insert into {lease} (part) select unnest(:partitions::smallint[]) on conflict do nothing

-- name: heartbeat
-- First the instance, then its leases, in every statement: two processes cannot deadlock.
with alive as (
    insert into {instance} as i (id, expires_at) values (:owner, clock_timestamp() + :micros * interval '1 microsecond')
    on conflict (id) do update set expires_at = excluded.expires_at
    returning 1
)
update {lease} set expires_at = clock_timestamp() + :micros * interval '1 microsecond'
where owner = :owner and (select count(*) from alive) = 1

-- name: renew
update {lease} set expires_at = clock_timestamp() + :micros * interval '1 microsecond' where owner = :owner

-- name: delete_instance
delete from {instance} where id = :instance

-- name: free_leases
update {lease} set owner = null, expires_at = null where owner = :instance

-- fragment: micros_left
(extract(epoch from expires_at - clock_timestamp()) * 1000000)::bigint

-- name: cluster_view
-- One statement, because it reads one snapshot.
select part, epoch, owner as instance, {micros_left} as micros_left, null::text as handler from {lease}
union all select null::smallint, null::bigint, id, {micros_left}, null::text from {instance}
union all select null::smallint, null::bigint, null::uuid, null::bigint, handler from {pause}

-- name: take_partitions
-- Skips a lease that another instance is taking. PostgreSQL checks the condition again on a lease that another
-- instance has just taken.
update {lease} l set
    owner = :owner, epoch = l.epoch + 1, expires_at = clock_timestamp() + :micros * interval '1 microsecond'
from (
    select part from {lease}
    where part = any(:partitions) and (owner is null or expires_at <= clock_timestamp())
    order by part for update skip locked
) free
where l.part = free.part

-- name: release_leases
update {lease} l set owner = null, expires_at = clock_timestamp() + :reserved * interval '1 microsecond'
from unnest(:leases.part::smallint[], :leases.epoch::bigint[]) as f (part, epoch)
where l.part = f.part and l.epoch = f.epoch and l.owner = :owner

-- name: lock_leases
select l.part from {lease} l join unnest(:leases.part::smallint[], :leases.epoch::bigint[]) as f (part, epoch)
    on l.part = f.part and l.epoch = f.epoch
where l.owner = :owner order by l.part for share of l

-- name: reap_expired
with reaped as (
    delete from {instance} where id = :instance and expires_at <= clock_timestamp() returning id
)
update {lease} set owner = null, expires_at = null where owner in (select id from reaped)
