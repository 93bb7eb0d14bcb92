#![allow(unused)]

use outbox::{Registry, outbox_handler};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Payments {
    async fn on_order(&self, event: OrderCreated) {}
}

fn main() {
    Registry::builder().handler::<Payments>();
}
