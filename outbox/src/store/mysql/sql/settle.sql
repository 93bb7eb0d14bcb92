-- Every statement on given rows starts from them (`straight_join`) and finds each by its key. It reads no other row,
-- so it locks no other row. `force index`: otherwise the server reads a small table completely, and waits for a row
-- that another transaction has just inserted. Rows come in the order of their ids, so that two batches cannot
-- deadlock. `:owned` are the partitions whose leases the process has locked.

-- fragment: given_records
{given_ids} straight_join {record} r force index (primary) on r.id = u.id

-- fragment: is_unchanged
r.status in ('pending', 'scheduled') and r.part in ([[:owned.each]])

-- name: complete_records
update {given_records}
set r.status = 'completed', r.completed_at = utc_timestamp(6) where {is_unchanged}

-- name: delete_records
delete r from {given_records} where {is_unchanged}

-- name: set_unhandled
update {given_records} set r.status = 'unhandled' where {is_unchanged}

-- name: split_records
-- Only locks the records. `add_deliveries` changes the records that this statement finds.
select r.id from {given_records} where {is_unchanged} for update

-- fragment: given_deliveries
-- Numbers have the types of the columns.
json_table(:deliveries, '$[*]' columns (
    place for ordinality,
    record_id bigint path '$.record_id',
    part smallint path '$.part',
    record_key varchar(255) character set utf8mb4 path '$.key',
    handler varchar(255) character set utf8mb4 path '$.handler',
    status varchar(20) character set utf8mb4 path '$.status',
    blocking boolean path '$.blocking',
    attempt bigint path '$.attempt',
    failure_count bigint path '$.failure_count',
    first_failed_at bigint path '$.first_failed_at',
    due_in bigint path '$.due_in',
    expected_attempt bigint path '$.expected_attempt',
    error longtext character set utf8mb4 path '$.error',
    error_kind varchar(255) character set utf8mb4 path '$.error_kind',
    fingerprint varchar(255) character set utf8mb4 path '$.fingerprint'
)) u

-- name: add_deliveries
update {given_records} set r.status = 'split'
-- then
insert ignore into {delivery} (record_id, part, `key`, handler, status, blocking, attempt, failure_count,
    first_failed_at, failed_at, due_at, error, error_kind, fingerprint)
select u.record_id, u.part, u.record_key, u.handler, u.status, u.blocking, u.attempt, u.failure_count,
    timestamp('1970-01-01') + interval u.first_failed_at microsecond,
    if(u.error is null, null, utc_timestamp(6)),
    utc_timestamp(6) + interval u.due_in microsecond, u.error, u.error_kind, u.fingerprint
from {given_deliveries} order by u.place

-- name: change_deliveries
-- Changes only deliveries that have not changed since the fetcher read them.
update {given_deliveries} straight_join {delivery} d force index (record_id) on d.record_id = u.record_id and d.handler = u.handler
set d.status = u.status, d.blocking = u.blocking, d.attempt = u.attempt, d.failure_count = u.failure_count,
    d.first_failed_at = timestamp('1970-01-01') + interval u.first_failed_at microsecond,
    d.failed_at = if(u.error is null, d.failed_at, utc_timestamp(6)),
    d.due_at = utc_timestamp(6) + interval u.due_in microsecond,
    d.finished_at = if(u.status = 'completed', utc_timestamp(6), null),
    d.error = coalesce(u.error, d.error), d.error_kind = coalesce(u.error_kind, d.error_kind),
    d.fingerprint = coalesce(u.fingerprint, d.fingerprint)
where d.attempt = u.expected_attempt and d.status in ('waiting', 'retrying') and d.part in ([[:owned.each]])

-- fragment: given_failures
json_table(:failures, '$[*]' columns (
    record_id bigint path '$.record_id',
    part smallint path '$.part',
    handler varchar(255) character set utf8mb4 path '$.handler',
    attempt bigint path '$.attempt',
    kind varchar(255) character set utf8mb4 path '$.kind',
    fingerprint varchar(255) character set utf8mb4 path '$.fingerprint',
    error longtext character set utf8mb4 path '$.error'
)) u

-- name: add_failures
insert ignore into {failure} (record_id, handler, attempt, failed_at, kind, fingerprint, error)
select d.record_id, d.handler, u.attempt, utc_timestamp(6), u.kind, u.fingerprint, u.error
from {given_failures} straight_join {delivery} d force index (record_id) on d.record_id = u.record_id and d.handler = u.handler
where d.part in ([[:owned.each]])

-- name: delete_old_failures
delete f from {given_failures} straight_join {failure} f force index (primary) on f.record_id = u.record_id and f.handler = u.handler
where u.part in ([[:owned.each]]) and f.attempt <= u.attempt - :kept

-- name: lock_split_records
-- Two transactions that complete deliveries of one record at the same time must see each other's changes.
select r.id from {given_records} where r.status = 'split' for update

-- name: open_deliveries
-- The first read of its transaction that does not lock. It comes after `lock_split_records`, so it sees the changes
-- of transactions that held that lock before. A locking read would wait for transactions that wait for our lock.
select d.record_id from {given_ids} straight_join {delivery} d force index (record_id) on d.record_id = u.id
where d.status in ('waiting', 'retrying', 'failed')

-- name: complete_split_records
update {given_records}
set r.status = 'completed', r.completed_at = utc_timestamp(6)

-- name: delete_split_records
delete t from {given_ids} straight_join {record} t force index (primary) on t.id = u.id
-- then
delete t from {given_ids} straight_join {delivery} t force index (record_id) on t.record_id = u.id
-- then
delete t from {given_ids} straight_join {failure} t force index (primary) on t.record_id = u.id

-- name: rename_handler
update {delivery} d left join {delivery} e on e.record_id = d.record_id and e.handler = :to
set d.handler = :to
where d.handler = :from and e.id is null and d.part in ([[:owned.each]])

-- name: requeue_unhandled
update {record} set status = 'pending'
where status = 'unhandled' and event = :event and part in ([[:owned.each]]) order by id limit :limit
