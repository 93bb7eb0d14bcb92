//! The stored outbox on real databases: the same cases on SQLite, PostgreSQL and MySQL/MariaDB.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod database;
mod migrating;
mod publishing;

pub(crate) use database::on_each_database;
