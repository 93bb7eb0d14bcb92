#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(validate = takes_it_by_value)]
async fn charge_card(event: OrderCreated) {}

fn takes_it_by_value(event: OrderCreated) -> Result<(), std::fmt::Error> {
    Ok(())
}

#[outbox_handler(validate = returns_a_bool)]
async fn send_receipt(event: OrderCreated) {}

fn returns_a_bool(event: &OrderCreated) -> bool {
    true
}

#[outbox_handler(validate = is_asynchronous)]
async fn reserve_stock(event: OrderCreated) {}

async fn is_asynchronous(event: &OrderCreated) -> Result<(), std::fmt::Error> {
    Ok(())
}

#[outbox_handler(validate = returns_text)]
async fn count_orders(event: OrderCreated) {}

fn returns_text(event: &OrderCreated) -> Result<(), String> {
    Ok(())
}

fn main() {}
