#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(max_retry = 3)]
async fn charge_card(event: OrderCreated) {}

#[retryable(max_retry = 3)]
#[outbox_handler]
async fn send_receipt(event: OrderCreated) {}

#[outbox_handler]
#[retryable(exponential(initial = "1s", factor = 2.0))]
async fn ship(event: OrderCreated) {}

fn main() {}
