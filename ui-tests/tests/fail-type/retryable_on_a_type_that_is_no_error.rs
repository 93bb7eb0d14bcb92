#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::{Bank, OrderCreated};

#[outbox_handler]
#[retryable(retry_on(Bank))]
async fn charge_card(event: OrderCreated) {}

fn main() {}
