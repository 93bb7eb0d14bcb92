-- name: lock_migration
select get_lock(concat('outbox-', md5(concat(database(), :tables))), 60)

-- name: create_schema
create schema if not exists {namespace}

-- name: create_versions
create table if not exists {schema} (version bigint primary key, applied_at datetime(6) not null) engine = innodb

-- name: newest_version
select coalesce(max(version), 0) from {schema}

-- name: add_version
insert into {schema} (version, applied_at) values (:version, utc_timestamp(6))
