#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

use std::rc::Rc;

#[outbox_handler]
async fn charge_card(event: OrderCreated) {
    let shared = Rc::new(event);
    std::future::ready(()).await;
    drop(shared);
}

fn main() {}
