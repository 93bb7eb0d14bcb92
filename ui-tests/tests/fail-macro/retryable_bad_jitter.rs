#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(jitter = ful)]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler]
#[retryable(jitter = 1.5)]
async fn send_receipt(event: OrderCreated) {}

#[outbox_handler]
#[retryable(jitter = 100)]
async fn ship(event: OrderCreated) {}

#[outbox_handler]
#[retryable(jitter = "a bit")]
async fn bill(event: OrderCreated) {}

fn main() {}
