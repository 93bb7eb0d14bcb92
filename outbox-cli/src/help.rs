//! The JSON of each command, at the end of its help.

pub(crate) const STATUS: &str = "\
JSON, one object: pending, scheduled, unhandled, waiting, retrying, failed, completed, discarded; exact (false: completed and
discarded, or what is below, are estimates); oldest_pending_seconds; events [{event, pending, scheduled, unhandled, waiting, retrying, failed}],
errors [{fingerprint, handler, kind, error, count, oldest_record_id, newest_record_id}] and lanes (as of `outbox lanes`), the
first ten of each; paused [handler]; instances (how many).";

pub(crate) const WATCH: &str = "\
JSON, one object per look: the counts of `outbox status`, pending to discarded and exact: pending, scheduled, unhandled, waiting,
retrying, failed, completed, discarded, exact; oldest_pending_seconds; published_per_second and handled_per_second (null at the
first look); lanes (as of `outbox lanes`); paused [handler]; instances (as of `outbox instances`).";

pub(crate) const LIST: &str = "\
JSON, one object per line: record_id, event_id, event, key, status, created_at, due_at, completed_at; where deliveries are
listed, delivery {handler, status, blocking, attempt, failure_count, first_failed_at, due_at, finished_at, kind, fingerprint,
error}. That there are more is said on the standard error output.";

pub(crate) const SHOW: &str = "\
JSON, one object: record_id, event_id, event, version, key, status, created_at, due_at, completed_at, max_retries, headers,
payload (the event itself), deliveries (as of `outbox list`), failures [{handler, attempt, failed_at, kind, fingerprint, error}].";

pub(crate) const CHANGE: &str = "\
JSON, one object: changed (how many), interrupted. With IDs one per line: record_id, handlers, dry_run, changed. With --dry-run
and filters: dry_run, would_change (how many), items (the first of them, as of `outbox list`).";

pub(crate) const LANES: &str = "\
JSON, one object per line: key, handler, record_id, status, attempt, error, due_in_seconds (all of the head), waiting (how many
behind it).";

pub(crate) const INSTANCES: &str = "\
JSON, one object per line: id, started_at, expires_in_seconds (null: its lease has run out), partitions (how many).";

pub(crate) const HANDLER: &str = "\
JSON, one object: handler, paused (as it is afterwards, or would be), dry_run, changed.";

pub(crate) const PRUNE: &str = "\
JSON, one object: changed (how many were deleted), interrupted. With --dry-run: dry_run, would_delete (how many),
oldest_record_id, newest_record_id.";

pub(crate) const MIGRATE: &str = "\
JSON, one object: from, to (versions), dry_run. With --print: version, sql.";

pub(crate) const POLICY: &str = "\
JSON, one object per policy: policy (its name), configured, description, max_retries, max_elapsed, only_errors, never_errors,
schedule [{retry, delay, at}], of which delay and at have the earliest and the latest in seconds, after the failure before and
after the first one.";
