-- name: create_versions
create table if not exists {schema} (version integer primary key, applied_at integer not null default ({now}))

-- name: newest_version
select coalesce(max(version), 0) from {schema}

-- name: add_version
insert into {schema} (version) values (:version)
