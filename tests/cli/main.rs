//! The program `outbox`, run as a person runs it, on SQLite, PostgreSQL and MySQL/MariaDB.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "every function here is part of a test"
)]

mod changing;
mod interrupting;
mod million;
mod policy;
mod program;
mod reading;
mod refusing;
mod restoring;
mod rows;
mod terminal;
mod watching;
