#![allow(unused)]

use outbox::{Registry, Retry, RetryAware, outbox_handler};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
fn broken_handler(event: OrderCreated) {}

impl RetryAware for broken_handler {
    type Policy = Retry;
    fn retry_policy(&self) -> Retry {
        Retry::default()
    }
}

fn main() {
    Registry::builder().handler::<broken_handler>();
    broken_handler(todo!());
}
