-- Version 1: from nothing. Each statement does nothing if it was executed before.
-- Keys are bytes: no collation takes two of them for the same. There are no partial indexes, so each begins with
-- the column that tells its rows from the others. Unhandled records have none of their own: every record would
-- pay for it, and they are rarely asked for.

-- name: record
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
    index {plain record_pending} (status, part, id),
    index {plain record_scheduled} (status, part, due_at),
    unique index {plain record_dedup} (dedup_key)
) engine = innodb character set utf8mb4 collate utf8mb4_bin

-- name: delivery
-- One row for each handler that did not finish a record. Its id is its place in the lane. Failed deliveries are
-- found by the index of the waiting ones.
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
    due_at datetime(6),
    finished_at datetime(6),
    error longtext,
    error_kind varchar(255),
    fingerprint varchar(255),
    unique (record_id, handler),
    index {plain delivery_lane} (blocking, part, `key`, handler, id),
    index {plain delivery_waiting} (status, id),
    index {plain delivery_due} (status, part, due_at)
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
    index {plain command_created} (created_at)
) engine = innodb character set utf8mb4 collate utf8mb4_bin

-- name: inbox
-- The messages that arrived.
create table if not exists {inbox} (
    source varbinary(255) not null,
    message_id varbinary(255) not null,
    receipt binary(16) not null,
    created_at datetime(6) not null,
    primary key (source, message_id),
    index {plain inbox_created} (created_at)
) engine = innodb character set utf8mb4 collate utf8mb4_bin
