#![allow(unused)]

use outbox::{Handler, Metadata, outbox_handler};
use outbox_ui_tests::OrderCreated;

#[outbox_handler(marker = "ChargeCard")]
async fn charge_card(event: OrderCreated) {}

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler(marker = OnOrder)]
    async fn on_order(&self, event: OrderCreated) {}
}

#[outbox_handler(marker = HandlesOrders)]
impl Handler<OrderCreated> for Payments {
    async fn handle(&self, event: OrderCreated, meta: &Metadata) {}
}

fn main() {}
