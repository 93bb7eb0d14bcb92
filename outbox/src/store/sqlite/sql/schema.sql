-- Each statement does nothing if it ran before. A released version never changes: a change of the tables is a new
-- version at the end of this file.

-- version: 1
-- In SQLite, the name of an index has the schema, and the name of its table after `on` does not.

-- name: record
-- max_retries: n is the number of the publisher; -1 - n is the number of its configuration, pinned.
-- `autoincrement`: an id is never used twice, not even after its record was deleted.
create table if not exists {record} (
    id integer primary key autoincrement,
    part integer not null,
    status text not null default 'pending',
    key text not null,
    event text not null,
    version integer not null,
    event_id blob not null,
    payload text not null,
    headers text,
    max_retries integer,
    dedup_key text,
    created_at integer not null default ({now}),
    due_at integer,
    completed_at integer
)

-- name: record_pending
create index if not exists {qualified record_pending} on {unqualified record} (part, id) where status = 'pending'

-- name: record_scheduled
create index if not exists {qualified record_scheduled} on {unqualified record} (part, due_at) where status = 'scheduled'

-- name: record_unhandled
create index if not exists {qualified record_unhandled} on {unqualified record} (part, event) where status = 'unhandled'

-- name: record_dedup
create unique index if not exists {qualified record_dedup} on {unqualified record} (dedup_key) where dedup_key is not null

-- name: delivery
-- One row for each handler that did not finish a record. The id is the position in the lane.
-- first_failed_at: the first failure that used up a retry. failed_at: the last failure.
create table if not exists {delivery} (
    id integer primary key autoincrement,
    record_id integer not null,
    part integer not null,
    key text not null,
    handler text not null,
    status text not null,
    blocking integer not null,
    attempt integer not null,
    failure_count integer not null,
    first_failed_at integer,
    failed_at integer,
    due_at integer,
    finished_at integer,
    error text,
    error_kind text,
    fingerprint text,
    unique (record_id, handler)
)

-- name: delivery_lane
create index if not exists {qualified delivery_lane} on {unqualified delivery} (part, key, handler, id) where blocking

-- name: delivery_waiting
create index if not exists {qualified delivery_waiting} on {unqualified delivery} (part, handler, id) where status = 'waiting'

-- name: delivery_due
create index if not exists {qualified delivery_due} on {unqualified delivery} (part, due_at) where status = 'retrying'

-- name: delivery_failed
create index if not exists {qualified delivery_failed} on {unqualified delivery} (id) where status = 'failed'

-- name: delivery_failed_at
create index if not exists {qualified delivery_failed_at} on {unqualified delivery} (failed_at, id) where status = 'failed'

-- name: failure
create table if not exists {failure} (
    record_id integer not null,
    handler text not null,
    attempt integer not null,
    failed_at integer not null default ({now}),
    kind text not null,
    fingerprint text not null,
    error text not null,
    primary key (record_id, handler, attempt)
)

-- name: instance
create table if not exists {instance} (
    id blob primary key,
    started_at integer not null default ({now}),
    expires_at integer not null
)

-- name: lease
create table if not exists {lease} (
    part integer primary key,
    owner blob,
    epoch integer not null default 0,
    expires_at integer
)

-- name: partitions
-- One row for each partition. Their number is chosen when the tables are made, and never changes: each record
-- has its partition.
insert into {lease} (part)
with recursive p (part) as (select 0 union all select part + 1 from p where part + 1 < {partitions})
select part from p where not exists (select 1 from {lease})

-- name: pause
create table if not exists {pause} (
    handler text primary key,
    paused_at integer not null default ({now})
)

-- name: command
-- The results of commands.
create table if not exists {command} (
    operation text not null,
    command_id text not null,
    fingerprint text,
    result text,
    created_at integer not null default ({now}),
    primary key (operation, command_id)
)

-- name: command_created
create index if not exists {qualified command_created} on {unqualified command} (created_at)

-- name: inbox
-- The received messages.
create table if not exists {inbox} (
    source text not null,
    message_id text not null,
    created_at integer not null default ({now}),
    primary key (source, message_id)
)

-- name: inbox_created
create index if not exists {qualified inbox_created} on {unqualified inbox} (created_at)
