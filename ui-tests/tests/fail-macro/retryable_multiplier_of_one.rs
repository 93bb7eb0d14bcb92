#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(exponential(initial = "1s", multiplier = 1.0, max = "10s"))]
async fn charge_card(event: OrderCreated) {}

fn main() {}
