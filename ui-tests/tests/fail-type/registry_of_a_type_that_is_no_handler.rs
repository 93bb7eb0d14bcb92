#![allow(unused)]

use outbox::Registry;
use outbox_ui_tests::OrderCreated;

async fn charge_card(event: OrderCreated) {}

struct Payments;

fn main() {
    Registry::builder().handler::<Payments>();
}
