#![allow(unused)]

use outbox::{State, outbox_handler};
use outbox_ui_tests::{Declined, OrderCreated};

#[outbox_handler]
async fn charge_card(event: OrderCreated) -> Result<(), impl std::error::Error> {
    Ok::<(), Declined>(())
}

#[outbox_handler]
async fn send_receipt(event: OrderCreated, State(bank): State<impl Clone>) {}

fn main() {}
