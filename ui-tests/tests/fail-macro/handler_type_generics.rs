#![allow(unused)]

use outbox::outbox_handler;

#[outbox_handler]
async fn charge_card<E: Send>(event: E) {}

fn main() {}
