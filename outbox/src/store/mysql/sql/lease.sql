-- A transaction in this file runs at `read committed`, in which only rows that match stay locked. At a higher level,
-- every row that it reads stays locked, also rows of other owners.

-- name: partition_count
select count(*) from {lease}

-- name: seed_partitions
insert ignore into {lease} (part) select p.part from json_table(:partitions, '$[*]' columns (part smallint path '$')) p

-- fragment: renew_leases
-- Waits for batches that have locked a lease, so their leases are renewed too.
update {lease} set expires_at = utc_timestamp(6) + interval :micros microsecond where owner = :owner

-- transaction: heartbeat
insert into {instance} (id, started_at, expires_at)
values (:owner, utc_timestamp(6), utc_timestamp(6) + interval :micros microsecond)
on duplicate key update expires_at = values(expires_at)
-- then
{renew_leases}

-- transaction: renew
{renew_leases}

-- name: delete_instance
delete from {instance} where id = :instance

-- fragment: free_all
update {lease} set owner = null, expires_at = null where owner = :instance

-- transaction: free_leases
{free_all}

-- transaction: reap_expired
delete from {instance} where id = :instance and expires_at <= utc_timestamp(6)
-- then
{free_all}

-- fragment: micros_left
timestampdiff(microsecond, utc_timestamp(6), expires_at)

-- name: cluster_view
-- One statement, because it reads one snapshot.
select part, epoch, owner as instance, {micros_left} as micros_left, null as handler from {lease}
union all select null, null, id, {micros_left}, null from {instance}
union all select null, null, null, null, handler from {pause}

-- name: lock_free_leases
-- Skips a lease that another instance is taking.
select part from {lease} where part in ([[:partitions.each]]) and (owner is null or expires_at <= utc_timestamp(6))
order by part for update skip locked

-- name: take_partitions
update {lease} set
    owner = :owner, epoch = epoch + 1, expires_at = utc_timestamp(6) + interval :micros microsecond
where part in ([[:partitions.each]])

-- name: release_leases
update {given_leases}
straight_join {lease} l force index (primary) on l.part = f.part
set l.owner = null, l.expires_at = utc_timestamp(6) + interval :reserved microsecond
where l.epoch = f.epoch and l.owner = :owner

-- name: lock_leases
-- This owner keeps the leases until the transaction ends, because other instances skip locked leases.
-- The order is that of the partitions, so that two owners cannot deadlock.
select l.part from {given_leases}
straight_join {lease} l force index (primary) on l.part = f.part
where l.epoch = f.epoch and l.owner = :owner order by l.part lock in share mode
