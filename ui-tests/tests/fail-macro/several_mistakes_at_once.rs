#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler(id = "", timeout = "soon", retries = 3)]
#[retryable(exponential(initial = "0s", multiplier = 1.0), max_retries = -1)]
fn charge_card<T>(event: &OrderCreated, bank: impl Clone) {}

fn main() {}
