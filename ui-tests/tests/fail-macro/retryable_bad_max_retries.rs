#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(max_retries = -1)]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler]
#[retryable(max_attempts = 0)]
async fn send_receipt(event: OrderCreated) {}

#[outbox_handler]
#[retryable(max_retries = LIMIT)]
async fn ship(event: OrderCreated) {}

fn main() {}
