#![allow(unused)]

use std::time::Duration;

use outbox::{RetryPolicy, outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

struct Patient {
    retries: u32,
}

impl RetryPolicy for Patient {
    fn next_delay(&self, failure_count: u32) -> Duration {
        Duration::from_secs(60)
    }
    fn max_retries(&self) -> u32 {
        self.retries
    }
}

#[outbox_handler]
#[retryable(policy = Patient)]
async fn charge_card(event: OrderCreated) {}

fn main() {}
