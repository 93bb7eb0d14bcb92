#![deny(warnings)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox::retryable(max_retries = 1)]
#[outbox_handler]
async fn above(_event: OrderCreated) {}

#[outbox_handler]
#[outbox::retryable(max_retries = 1)]
async fn below(_event: OrderCreated) {}

#[::outbox::retryable(max_retries = 1)]
#[outbox_handler]
async fn spaced(_event: OrderCreated) {}

fn main() {}
