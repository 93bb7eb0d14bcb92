#![deny(warnings)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[cfg_attr(all(), retryable(max_retries = 1))]
#[outbox_handler]
async fn above(_event: OrderCreated) {}

#[outbox_handler]
#[cfg_attr(all(), retryable(max_retries = 1))]
async fn below(_event: OrderCreated) {}

#[cfg_attr(any(), retryable(max_retries = 1))]
#[outbox_handler]
async fn never(_event: OrderCreated) {}

#[cfg_attr(all(), retryable(max_retries = 1), outbox_handler)]
async fn both(_event: OrderCreated) {}

fn main() {
    let registry = outbox::Registry::builder()
        .handler::<above>()
        .handler::<below>()
        .handler::<never>()
        .handler::<both>()
        .build()
        .unwrap();
    let report = registry.handlers();
    for handler in &report {
        let by_attribute = !handler.id.ends_with("never");
        assert_eq!(
            handler.source.to_string().contains("retryable"),
            by_attribute,
            "{handler:?}"
        );
    }
}
