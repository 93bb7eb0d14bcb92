-- name: seed_partitions
-- ?1 how many
with recursive p (part) as (select 0 where ?1 > 0 union all select part + 1 from p where part + 1 < ?1)
insert into {lease} (part) select part from p where true on conflict do nothing

-- name: add_instance
-- ?1 instance  ?2 microseconds
insert into {instance} (id, expires_at) values (?1, {now} + ?2)
on conflict (id) do update set expires_at = excluded.expires_at

-- name: renew
-- ?1 owner  ?2 microseconds
update {lease} set expires_at = {now} + ?2 where owner = ?1

-- name: delete_instance
delete from {instance} where id = ?1

-- name: delete_expired_instance
delete from {instance} where id = ?1 and expires_at <= {now}

-- name: free_leases
update {lease} set owner = null, expires_at = null where owner = ?1

-- name: cluster_view
-- One statement, because it sees one moment.
select part, epoch, owner as instance, expires_at - {now} as micros_left, null as handler from {lease}
union all select null, null, id, expires_at - {now}, null from {instance}
union all select null, null, null, null, handler from {pause}

-- name: take_partitions
-- ?1 owner  ?2 microseconds  ?3 partitions
update {lease} set owner = ?1, epoch = epoch + 1, expires_at = {now} + ?2
where part in (select p.value from json_each(?3) p) and (owner is null or expires_at <= {now})

-- name: release_leases
-- ?1 partitions and epochs  ?2 owner  ?3 reserved for microseconds
update {lease} as l set owner = null, expires_at = {now} + ?3
from json_each(?1) as f
where l.part = f.value ->> 0 and l.epoch = f.value ->> 1 and l.owner = ?2

-- name: lock_leases
-- ?1 partitions and epochs  ?2 owner
-- There is one writer at a time: nothing needs to be locked.
select l.part from {lease} l join json_each(?1) f
    on l.part = f.value ->> 0 and l.epoch = f.value ->> 1
where l.owner = ?2
