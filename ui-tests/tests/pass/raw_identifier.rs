#![deny(warnings)]

use outbox::{Registry, Retry, RetryAware, outbox_handler};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
async fn r#match(_event: OrderCreated) {}

impl RetryAware for r#match {
    type Policy = Retry;
    fn retry_policy(&self) -> Retry {
        Retry::default()
    }
}

fn main() {
    let registry = Registry::builder().handler::<r#match>().build().unwrap();
    assert!(
        registry
            .handlers()
            .into_iter()
            .all(|handler| handler.id.ends_with("::match"))
    );
}
