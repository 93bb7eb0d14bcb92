-- Texts that several files include.

-- fragment: key
key

-- fragment: created_at
r.created_at

-- fragment: first_failed_at
d.first_failed_at
