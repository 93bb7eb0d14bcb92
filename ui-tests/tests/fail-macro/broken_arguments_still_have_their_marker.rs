#![allow(unused)]

use outbox::{Registry, outbox_handler};
use outbox_ui_tests::OrderCreated;

#[outbox_handler(marker = ChargeCard, timeout = "soon")]
async fn charge_card(event: OrderCreated) {}

fn main() {
    Registry::builder().handler::<ChargeCard>();
}
