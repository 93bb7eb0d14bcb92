#![allow(unused)]

use outbox::retryable;
use outbox_ui_tests::OrderCreated;

#[retryable(max_retries = 3)]
async fn charge_card(event: OrderCreated) {}

fn main() {}
