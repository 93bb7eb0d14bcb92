#![deny(warnings)]

use outbox::{Handler, Metadata, outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Payments {
    #[retryable(max_retries = 1)]
    #[outbox_handler]
    async fn on_order(&self, _event: OrderCreated) {}
}

mod by_trait {
    use outbox::retryable;

    #[retryable(max_retries = 1)]
    #[super::outbox_handler]
    impl super::Handler<super::OrderCreated> for super::Payments {
        async fn handle(&self, _event: super::OrderCreated, _meta: &super::Metadata) {}
    }
}

fn main() {}
