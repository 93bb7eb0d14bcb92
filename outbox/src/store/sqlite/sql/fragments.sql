-- Texts that several files include.

-- fragment: now
-- The current time on the database's clock, in microseconds since 1970.
cast(unixepoch('subsec') * 1000000 as integer)

-- fragment: key
key

-- fragment: created_at
r.created_at

-- fragment: first_failed_at
d.first_failed_at
