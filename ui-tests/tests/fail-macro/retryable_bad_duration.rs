#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(fixed("5 sec onds"))]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler]
#[retryable(linear(initial = 500, increment = "1s"))]
async fn send_receipt(event: OrderCreated) {}

#[retryable(exponential(initial = "1s", max = ""))]
#[outbox_handler]
async fn ship(event: OrderCreated) {}

fn main() {}
