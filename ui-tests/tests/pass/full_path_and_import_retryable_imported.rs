#![deny(warnings)]

use outbox::retryable;
use outbox_ui_tests::OrderCreated;

#[retryable(max_retries = 1)]
#[outbox::outbox_handler]
async fn above(_event: OrderCreated) {}

#[outbox::outbox_handler]
#[retryable(max_retries = 1)]
async fn below(_event: OrderCreated) {}

fn main() {}
