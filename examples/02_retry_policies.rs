//! Every place that can name a policy, and which one wins: `cargo run --example retry_policies`

use std::time::Duration;

use outbox::{
    HandlerError, OutboxEvent, Registry, Retry, RetryAware, RetryBuilder, RetryPolicy,
    outbox_handler, retryable,
};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

/// A policy of our own.
#[derive(Default)]
struct Patient;

impl RetryPolicy for Patient {
    fn should_retry(&self, error: &HandlerError) -> bool {
        !error.is::<std::num::ParseIntError>()
    }
    fn next_delay(&self, failure_count: u32) -> Duration {
        Duration::from_secs(60) * failure_count.min(10)
    }
    fn max_retries(&self) -> u32 {
        20
    }
}

/// A builder can be a constant.
const BANK: RetryBuilder = Retry::builder()
    .max_retries(9)
    .fixed(Duration::from_secs(30));

#[outbox_handler(id = "1-by-trait")]
#[retryable(max_retries = 1)] // shadowed, and the report says so
async fn by_trait(_event: OrderCreated) {}

impl RetryAware for by_trait {
    type Policy = Patient;
    fn retry_policy(&self) -> Patient {
        Patient
    }
}

#[outbox_handler(id = "2-by-type")]
#[retryable(policy = Patient)]
async fn by_type(_event: OrderCreated) {}

#[outbox_handler(id = "3-by-constant")]
#[retryable(policy = BANK)]
async fn by_constant(_event: OrderCreated) {}

#[outbox_handler(id = "4-by-name")]
#[retryable(policy = "gentle")]
async fn by_name(_event: OrderCreated) {}

#[outbox_handler(id = "5-inline")]
#[retryable(
    linear(initial = "1s", increment = "2s", max = "1m"),
    max_attempts = 5,
    jitter = 0.2,
    retry_on(std::io::Error)
)]
async fn inline(_event: OrderCreated) {}

#[outbox_handler(id = "6-global")]
async fn global(_event: OrderCreated) {}

fn main() -> anyhow::Result<()> {
    let gentle = Retry::builder().fixed(Duration::from_secs(300));
    let registry = Registry::linked()
        .named_policy("gentle", gentle)
        .retry_policy(Retry::builder().max_retries(2))
        .build()?;
    println!("{}", registry.handlers());
    Ok(())
}
