#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler]
    async fn on_order(event: OrderCreated) {}
}

fn main() {}
