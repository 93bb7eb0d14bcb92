#![deny(warnings)]

use outbox::{Registry, outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

fn main() {
    #[outbox_handler(id = "inner")]
    #[retryable(max_retries = 1)]
    async fn inner(_event: OrderCreated) {}

    assert!(Registry::builder().handler::<inner>().build().is_ok());
}
