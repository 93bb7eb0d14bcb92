-- name: seed_partitions
-- partitions
insert ignore into {lease} (part) select p.part from json_table(?, '$[*]' columns (part smallint path '$')) p

-- name: add_instance
-- instance, microseconds
insert into {instance} (id, started_at, expires_at)
values (?, utc_timestamp(6), utc_timestamp(6) + interval ? microsecond)
on duplicate key update expires_at = values(expires_at)

-- name: renew
-- microseconds, owner
-- Waits for batches that hold a lease at this moment: their leases are renewed too.
update {lease} set expires_at = utc_timestamp(6) + interval ? microsecond where owner = ?

-- name: delete_instance
delete from {instance} where id = ?

-- name: delete_expired_instance
delete from {instance} where id = ? and expires_at <= utc_timestamp(6)

-- name: free_leases
update {lease} set owner = null, expires_at = null where owner = ?

-- fragment: micros_left
timestampdiff(microsecond, utc_timestamp(6), expires_at)

-- name: cluster_view
-- One statement, because it sees one moment.
select part, epoch, owner as instance, {micros_left} as micros_left, null as handler from {lease}
union all select null, null, id, {micros_left}, null from {instance}
union all select null, null, null, null, handler from {pause}

-- name: lock_free_leases
-- partitions
-- A lease that another instance takes at this moment is skipped.
select part from {lease} where part in ([[?]]) and (owner is null or expires_at <= utc_timestamp(6))
order by part for update skip locked

-- name: take_partitions
-- owner, microseconds, partitions
update {lease} set
    owner = ?, epoch = epoch + 1, expires_at = utc_timestamp(6) + interval ? microsecond
where part in ([[?]])

-- name: release_leases
-- partitions and epochs, reserved for microseconds, owner
update {given_leases}
straight_join {lease} l force index (primary) on l.part = f.part
set l.owner = null, l.expires_at = utc_timestamp(6) + interval ? microsecond
where l.epoch = f.epoch and l.owner = ?

-- name: lock_leases
-- partitions and epochs, owner
-- The leases stay this owner's until the transaction ends: an instance that wants to take one finds it locked.
-- In the order of the partitions, so that two owners do not wait for each other.
select l.part from {given_leases}
straight_join {lease} l force index (primary) on l.part = f.part
where l.epoch = f.epoch and l.owner = ? order by l.part lock in share mode
