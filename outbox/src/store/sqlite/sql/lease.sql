-- name: partition_count
select count(*) from {lease}

-- name: seed_partitions
insert into {lease} (part) select p.value from json_each(:partitions) p where true on conflict do nothing

-- fragment: renew_leases
update {lease} set expires_at = {now} + :micros where owner = :owner

-- transaction: heartbeat
insert into {instance} (id, expires_at) values (:owner, {now} + :micros)
on conflict (id) do update set expires_at = excluded.expires_at
-- then
{renew_leases}

-- name: renew
{renew_leases}

-- name: delete_instance
delete from {instance} where id = :instance

-- fragment: free_all
update {lease} set owner = null, expires_at = null where owner = :instance

-- name: free_leases
{free_all}

-- transaction: reap_expired
delete from {instance} where id = :instance and expires_at <= {now}
-- then
{free_all}

-- name: cluster_view
-- One statement, because it reads one snapshot.
select part, epoch, owner as instance, expires_at - {now} as micros_left, null as handler from {lease}
union all select null, null, id, expires_at - {now}, null from {instance}
union all select null, null, null, null, handler from {pause}

-- name: take_partitions
update {lease} set owner = :owner, epoch = epoch + 1, expires_at = {now} + :micros
where part in (select p.value from json_each(:partitions) p) and (owner is null or expires_at <= {now})

-- name: release_leases
update {lease} as l set owner = null, expires_at = {now} + :reserved
from json_each(:leases) as f
where l.part = f.value ->> 'part' and l.epoch = f.value ->> 'epoch' and l.owner = :owner

-- name: lock_leases
-- SQLite has one writer at a time, so no row needs a lock.
select l.part from {lease} l join json_each(:leases) f
    on l.part = f.value ->> 'part' and l.epoch = f.value ->> 'epoch'
where l.owner = :owner
