#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(fixed = "5s")]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler]
#[retryable(exponential("1s"))]
async fn send_receipt(event: OrderCreated) {}

fn main() {}
