#![allow(unused)]

use outbox::{RetryAware, outbox_handler};
use outbox_ui_tests::{Bank, OrderCreated};

#[outbox_handler]
async fn charge_card(event: OrderCreated) {}

impl RetryAware for charge_card {
    type Policy = Bank;
    fn retry_policy(&self) -> Bank {
        todo!()
    }
}

fn main() {}
