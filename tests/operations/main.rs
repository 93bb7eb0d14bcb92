//! The operations for a person on call, on real databases: the same cases on SQLite, PostgreSQL and
//! MySQL/MariaDB. SQL writes the rows in their states; no dispatcher runs.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "every function here is part of a test"
)]

mod discarding;
mod failing;
mod pruning;
mod reading;
mod replaying;
mod restoring;
mod rows;
