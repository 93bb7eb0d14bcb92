-- Each statement does nothing if it ran before. A released version never changes: a change of the tables is a new
-- version at the end of this file.

-- version: 1
-- Keys are bytes, so that no collation treats two keys as equal. MySQL has no partial indexes, so each index begins
-- with the column that selects its rows. Unhandled records have no index of their own: they are rarely queried, and
-- every record would have an entry.

-- name: record
-- max_retries: n is the number of the publisher; -1 - n is the number of its configuration, pinned.
create table if not exists {record} (
    id bigint not null auto_increment primary key,
    part smallint not null,
    status enum('pending', 'scheduled', 'unhandled', 'split', 'completed', 'discarded') not null default 'pending',
    `key` varbinary(255) not null,
    event varchar(255) not null,
    version bigint not null,
    event_id binary(16) not null,
    payload longtext not null,
    headers mediumtext,
    max_retries bigint,
    dedup_key varbinary(255),
    created_at datetime(6) not null,
    due_at datetime(6),
    completed_at datetime(6),
    index {unqualified record_pending} (status, part, id),
    index {unqualified record_scheduled} (status, part, due_at),
    unique index {unqualified record_dedup} (dedup_key)
) engine = innodb character set utf8mb4 collate utf8mb4_bin

-- name: delivery
-- One row for each handler that did not finish a record. The id is the position in the lane. The index
-- `delivery_waiting` also finds failed deliveries.
-- first_failed_at: the first failure that used up a retry. failed_at: the last failure.
create table if not exists {delivery} (
    id bigint not null auto_increment primary key,
    record_id bigint not null,
    part smallint not null,
    `key` varbinary(255) not null,
    handler varchar(255) not null,
    status enum('waiting', 'retrying', 'failed', 'completed', 'discarded') not null,
    blocking boolean not null,
    attempt bigint not null,
    failure_count bigint not null,
    first_failed_at datetime(6),
    failed_at datetime(6),
    due_at datetime(6),
    finished_at datetime(6),
    error longtext,
    error_kind varchar(255),
    fingerprint varchar(255),
    unique (record_id, handler),
    index {unqualified delivery_lane} (blocking, part, `key`, handler, id),
    index {unqualified delivery_waiting} (status, id),
    index {unqualified delivery_due} (status, part, due_at),
    index {unqualified delivery_failed_at} (status, failed_at, id)
) engine = innodb character set utf8mb4 collate utf8mb4_bin

-- name: failure
create table if not exists {failure} (
    record_id bigint not null,
    handler varchar(255) not null,
    attempt bigint not null,
    failed_at datetime(6) not null,
    kind varchar(255) not null,
    fingerprint varchar(255) not null,
    error longtext not null,
    primary key (record_id, handler, attempt)
) engine = innodb character set utf8mb4 collate utf8mb4_bin

-- name: instance
-- session: the name of the lock that the watcher of the instance holds.
create table if not exists {instance} (
    id binary(16) primary key,
    session varchar(64),
    started_at datetime(6) not null,
    expires_at datetime(6) not null
) engine = innodb character set utf8mb4 collate utf8mb4_bin

-- name: lease
create table if not exists {lease} (
    part smallint primary key,
    owner binary(16),
    epoch bigint not null default 0,
    expires_at datetime(6)
) engine = innodb

-- name: partitions
-- One row for each partition. Their number is chosen when the tables are made, and never changes: each record
-- has its partition.
insert into {lease} (part)
with recursive p (part) as (select 0 union all select part + 1 from p where part + 1 < {partitions})
select part from p where not exists (select 1 from {lease})

-- name: pause
create table if not exists {pause} (
    handler varchar(255) primary key,
    paused_at datetime(6) not null
) engine = innodb character set utf8mb4 collate utf8mb4_bin

-- name: command
-- The results of commands.
create table if not exists {command} (
    operation varbinary(255) not null,
    command_id varbinary(255) not null,
    fingerprint varchar(255),
    result longtext,
    created_at datetime(6) not null,
    primary key (operation, command_id),
    index {unqualified command_created} (created_at)
) engine = innodb character set utf8mb4 collate utf8mb4_bin

-- name: inbox
-- The received messages.
create table if not exists {inbox} (
    source varbinary(255) not null,
    message_id varbinary(255) not null,
    receipt binary(16) not null,
    created_at datetime(6) not null,
    primary key (source, message_id),
    index {unqualified inbox_created} (created_at)
) engine = innodb character set utf8mb4 collate utf8mb4_bin
