#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(retry_on = Declined)]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler]
#[retryable(no_retry_on())]
async fn send_receipt(event: OrderCreated) {}

#[outbox_handler]
#[retryable(retry_on("declined"))]
async fn ship(event: OrderCreated) {}

fn main() {}
