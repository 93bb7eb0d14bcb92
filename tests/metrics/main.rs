//! Metrics, scraped over HTTP while outboxes run, and compared with what is true.

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
