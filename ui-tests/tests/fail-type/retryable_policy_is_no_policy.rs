#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::{Bank, OrderCreated};

#[outbox_handler]
#[retryable(policy = LIMIT)]
async fn charge_card(event: OrderCreated) {}

static LIMIT: u32 = 3;

#[retryable(policy = limit())]
#[outbox_handler]
async fn send_receipt(event: OrderCreated) {}

fn limit() -> u32 {
    3
}

#[outbox_handler]
#[retryable(policy = Bank)]
async fn ship(event: OrderCreated) {}

fn main() {}
