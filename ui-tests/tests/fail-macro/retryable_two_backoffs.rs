#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(fixed("5s"), exponential(initial = "1s"))]
async fn charge_card(event: OrderCreated) {}

fn main() {}
