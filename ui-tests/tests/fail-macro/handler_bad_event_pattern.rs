#![allow(unused)]

use outbox::{AnyEvent, outbox_handler};

#[outbox_handler(events = "*.created")]
async fn audit(event: AnyEvent) {}

#[outbox_handler(events = ["order.*", "order.**"])]
async fn log(event: AnyEvent) {}

#[outbox_handler(events = [])]
async fn nothing(event: AnyEvent) {}

fn main() {}
