//! The stored outbox on real databases: the same cases on SQLite, PostgreSQL and MySQL/MariaDB.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod database;
mod migrating;
mod publishing;

/// Writes each test three times, once per database. `$db` is a [`database`] of its own: a pool and
/// an outbox without handlers.
macro_rules! on_each_database {
    ($(async fn $name:ident($db:ident) $body:block)*) => {
        on_each_database!(@sqlite $(async fn $name($db) $body)*);
        on_each_database!(@postgres $(async fn $name($db) $body)*);
        on_each_database!(@mysql $(async fn $name($db) $body)*);
    };
    (@$database:ident $(async fn $name:ident($db:ident) $body:block)*) => {
        mod $database {
            use super::*;
            use crate::database::$database as database;

            $(#[tokio::test]
            async fn $name() {
                let $db = database::fresh().await;
                $body
            })*
        }
    };
}
pub(crate) use on_each_database;
