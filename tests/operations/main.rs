//! What a person on call looks at and changes, on real databases: the same cases on SQLite,
//! PostgreSQL and MySQL/MariaDB. Rows come into their states by SQL: nothing is dispatched here.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "every function here is part of a test"
)]

mod discarding;
mod pruning;
mod reading;
mod replaying;
mod rows;
