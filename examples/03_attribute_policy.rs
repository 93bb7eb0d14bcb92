//! Every form of `#[retryable]`, and the policy of a handler without it:
//! `cargo run --example attribute_policy`

use std::time::Duration;

use outbox::{
    HandlerError, OutboxEvent, Registry, Retry, RetryBuilder, RetryPolicy, outbox_handler,
    retry::PolicySource, retryable,
};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

/// A type that implements `RetryPolicy` and `Default`.
#[derive(Default)]
struct Patient;

impl RetryPolicy for Patient {
    fn next_delay(&self, failure_count: u32) -> Duration {
        Duration::from_secs(60) * failure_count.min(10)
    }
    fn max_retries(&self) -> u32 {
        20
    }
}

#[outbox_handler(id = "1-type")]
#[retryable(policy = Patient)]
async fn by_type(_event: OrderCreated) {}

/// A builder can be a constant.
const BANK: RetryBuilder = Retry::builder()
    .max_retries(9)
    .fixed(Duration::from_secs(30));

#[outbox_handler(id = "2-constant")]
#[retryable(policy = BANK)]
async fn by_constant(_event: OrderCreated) {}

#[outbox_handler(id = "3-expression")]
#[retryable(policy = Retry::builder().max_elapsed(Duration::from_secs(3600)))]
async fn by_expression(_event: OrderCreated) {}

/// `.named_policy(..)` defines the policy, or the configuration does under `retry.policies`.
#[outbox_handler(id = "4-name")]
#[retryable(policy = "gentle")]
async fn by_name(_event: OrderCreated) {}

/// The attribute itself defines the policy: `fixed`, `linear` or `exponential`, limits, jitter and
/// rules for errors. The compiler checks it.
#[outbox_handler(id = "5-inline")]
#[retryable(
    exponential(initial = "500ms", multiplier = 2.0, max = "10s"),
    max_attempts = 5,
    jitter = full,
    retry_on(std::io::Error),
    no_retry_on(std::num::ParseIntError),
    retry_if = is_a_timeout
)]
async fn inline(_event: OrderCreated) {}

fn is_a_timeout(error: &HandlerError) -> bool {
    error.to_string().contains("timed out")
}

/// Without `#[retryable]`: the policy of the builder, else the configuration's, else the default.
#[outbox_handler(id = "6-nothing")]
async fn nothing(_event: OrderCreated) {}

fn main() -> anyhow::Result<()> {
    // `Outbox::builder(pool)` has the same methods.
    let registry = Registry::linked()
        .named_policy("gentle", Retry::builder().fixed(Duration::from_secs(300)))
        .retry_policy(Retry::builder().max_retries(2))
        .build()?;
    println!("{}", registry.handlers());

    let delays = |id: &str| -> Vec<Duration> {
        let policy = registry.handler(id).map(|handler| handler.policy());
        let delays = policy.map(|policy| (1..=3).map(|n| policy.next_delay(n)).collect());
        delays.unwrap_or_default()
    };
    let [gentle, patient] = ["4-name", "1-type"].map(delays);
    anyhow::ensure!(gentle == [Duration::from_secs(300); 3]);
    anyhow::ensure!(patient == [60, 120, 180].map(Duration::from_secs));
    let nothing = registry.handlers().get("6-nothing").map(|it| it.source);
    anyhow::ensure!(nothing == Some(PolicySource::Global));
    Ok(())
}
