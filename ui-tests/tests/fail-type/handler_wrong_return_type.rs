#![allow(unused)]

use outbox::{Handler, Metadata, outbox_handler};
use outbox_ui_tests::{Bank, OrderCreated};

#[outbox_handler]
async fn charge_card(event: OrderCreated) -> i32 {
    0
}

#[outbox_handler]
async fn send_receipt(event: OrderCreated) -> Result<(), Bank> {
    Ok(())
}

struct Payments;

#[outbox_handler]
impl Handler<OrderCreated> for Payments {
    async fn handle(&self, event: OrderCreated, meta: &Metadata) -> bool {
        true
    }
}

fn main() {}
