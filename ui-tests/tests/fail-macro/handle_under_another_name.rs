#![allow(unused)]

use outbox::{Handler, outbox_handler};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Handler<OrderCreated> for Payments {
    async fn on_order(&self, event: OrderCreated) {}
}

fn main() {}
