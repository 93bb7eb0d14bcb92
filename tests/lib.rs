//! Code that the integration tests share: an empty database for each test, and functions that run
//! one record through one handler.

pub mod database;
pub mod effects;
pub mod order;

use std::sync::Arc;

use outbox::{
    __private::{Attempt, Decision},
    OutboxEvent, Registry,
    clock::ManualClock,
    record::Record,
};

/// The record of an event, published at the time 0 of a [`ManualClock`].
///
/// # Panics
/// If the event cannot be published.
pub fn record<E: OutboxEvent>(event: &E) -> Arc<Record> {
    #[expect(clippy::expect_used, reason = "for tests")]
    let record = Record::of(event, &ManualClock::default()).expect("a valid event");
    Arc::new(record)
}

/// The first attempt of one handler at the event.
///
/// # Panics
/// If the event cannot be published.
pub async fn first_attempt<E: OutboxEvent>(
    registry: &Registry,
    handler: &str,
    event: &E,
) -> Decision {
    let clock = ManualClock::default();
    registry
        .dispatch(handler, &record(event), Attempt::first(), &clock)
        .await
}

/// Writes each test three times, once per database. `$db` is a new [`database`] for this test: a
/// pool and an outbox without handlers.
#[macro_export]
macro_rules! on_each_database {
    ($(#[$attribute:meta])* $(async fn $name:ident($db:ident) $body:block)*) => {
        $crate::on_each_database!(@sqlite $(async fn $name($db) $body)*);
        $crate::on_each_database!(@postgres $(async fn $name($db) $body)*);
        $crate::on_each_database!(@mysql $(async fn $name($db) $body)*);
    };
    (@$database:ident $(async fn $name:ident($db:ident) $body:block)*) => {
        mod $database {
            #[allow(unused_imports, clippy::allow_attributes, reason = "not every test file needs all of them")]
            use super::*;
            #[allow(unused_imports, clippy::allow_attributes, reason = "not every test file needs all of them")]
            use $crate::database::$database as database;

            $(#[tokio::test]
            async fn $name() {
                let $db = database::fresh().await;
                $body
            })*
        }
    };
}
