-- name: lock_migration
-- $1 the names of the tables
select pg_advisory_xact_lock(hashtextextended($1, 0))

-- name: create_versions
create table if not exists {schema} (version bigint primary key, applied_at timestamptz not null default now())

-- name: newest_version
select coalesce(max(version), 0) from {schema}

-- name: add_version
insert into {schema} (version) values ($1)
