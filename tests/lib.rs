//! What the integration tests share: how to run one record through one handler.

use std::sync::Arc;

use outbox::{Attempt, Decision, ManualClock, OutboxEvent, Record, Registry};

/// The record of an event, published at the start of time.
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
