-- name: lock_migration
select pg_advisory_xact_lock(hashtextextended(:tables, 0))

-- name: create_schema
create schema if not exists {namespace}

-- name: create_versions
create table if not exists {schema} (version bigint primary key, applied_at timestamptz not null default now())

-- name: newest_version
select coalesce(max(version), 0) from {schema}

-- name: add_version
insert into {schema} (version) values (:version)
