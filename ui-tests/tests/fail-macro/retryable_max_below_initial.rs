#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(exponential(initial = "10s", multiplier = 2.0, max = "1s"))]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler]
#[retryable(linear(initial = "2m", increment = "1s"))]
async fn send_receipt(event: OrderCreated) {}

fn main() {}
