#![deny(warnings)]

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use outbox::{HandlerError, Retry, RetryBuilder, RetryPolicy, outbox_handler, retryable};
use outbox_ui_tests::{Declined, OrderCreated};

#[derive(Default, Clone)]
struct Patient;

impl RetryPolicy for Patient {
    fn next_delay(&self, _failure_count: u32) -> Duration {
        Duration::from_secs(60)
    }
    fn max_retries(&self) -> u32 {
        9
    }
}

const BUILDER: RetryBuilder = Retry::builder().max_retries(9);
static STATIC: Patient = Patient;
static LAZY: LazyLock<Retry> = LazyLock::new(Retry::default);

fn made() -> Arc<dyn RetryPolicy> {
    Arc::new(Patient)
}

#[outbox_handler]
#[retryable(policy = Patient)]
async fn by_type(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy = self::Patient)]
async fn by_path(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy = BUILDER)]
async fn by_const(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy = STATIC)]
async fn by_static(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy = &LAZY)]
async fn by_lazy_static(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy = made())]
async fn by_call(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy = Retry::builder().fixed(Duration::from_secs(5)).max_retries(9))]
async fn by_chain(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy = Retry::builder().build())]
async fn by_result(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy = "gentle")]
async fn by_name(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(
    exponential(initial = "500ms", multiplier = 2.0, max = "10s"),
    max_retries = 3,
    max_elapsed = "1h",
    jitter = 0.5,
    retry_on(std::io::Error, Declined),
    no_retry_on(std::fmt::Error),
    retry_if = is_ours,
)]
async fn inline(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(linear(initial = "2s", increment = "2s", max = "60s"), jitter = decorrelated)]
async fn linear(_event: OrderCreated) {}

#[outbox_handler]
#[retryable(fixed("5s"), jitter = "100ms", max_attempts = 4)]
async fn fixed(_event: OrderCreated) {}

fn is_ours(error: &HandlerError) -> bool {
    error.is::<Declined>()
}

fn main() {
    let registry = outbox::Registry::builder()
        .named_policy("gentle", Patient)
        .handler::<by_type>()
        .handler::<by_path>()
        .handler::<by_const>()
        .handler::<by_static>()
        .handler::<by_lazy_static>()
        .handler::<by_call>()
        .handler::<by_chain>()
        .handler::<by_result>()
        .handler::<by_name>()
        .handler::<inline>()
        .handler::<linear>()
        .handler::<fixed>()
        .build();
    registry.unwrap();
}
