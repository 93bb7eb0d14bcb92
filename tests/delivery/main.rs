//! The running outbox on real databases: the same cases on SQLite, PostgreSQL and MySQL/MariaDB.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod order;
mod outage;
mod poison;
mod scene;
mod transactional;
