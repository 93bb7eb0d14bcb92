//! Metrics, scraped over HTTP while an outbox runs, and compared with the counts of handlers.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod catalogue;
mod events;
mod health;
mod million;
mod run;
mod scrape;
mod transactions;
mod truth;
