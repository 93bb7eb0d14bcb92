-- Texts that several files include.

-- fragment: key
`key`

-- fragment: created_at
timestampdiff(microsecond, '1970-01-01', r.created_at)

-- fragment: first_failed_at
timestampdiff(microsecond, '1970-01-01', d.first_failed_at)

-- fragment: given_leases
json_table(:leases, '$[*]' columns (part smallint path '$.part', epoch bigint path '$.epoch')) f

-- fragment: given_ids
json_table(:ids, '$[*]' columns (id bigint path '$')) u
