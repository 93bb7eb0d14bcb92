#![deny(warnings)]

use handlers::{charge_card, send_receipt as receipt};
use outbox::{Registry, Retry, RetryAware};

mod handlers {
    use outbox::outbox_handler;
    use outbox_ui_tests::OrderCreated;

    #[outbox_handler]
    pub async fn charge_card(_event: OrderCreated) {}

    #[outbox_handler]
    pub async fn send_receipt(_event: OrderCreated) {}
}

impl RetryAware for receipt {
    type Policy = Retry;
    fn retry_policy(&self) -> Retry {
        Retry::default()
    }
}

fn main() {
    let registry = Registry::builder()
        .handler::<charge_card>()
        .handler::<receipt>();
    assert!(registry.build().is_ok());
    // The functions came with the same imports.
    let _ = (charge_card, receipt);
}
