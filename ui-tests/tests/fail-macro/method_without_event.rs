#![allow(unused)]

use outbox::outbox_handler;

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler]
    async fn on_order(&self) {}
}

fn main() {}
