#![deny(warnings)]

use outbox::{Registry, Retry, RetryAware, outbox_handler};
use outbox_ui_tests::OrderCreated;

mod charge_card {}

#[outbox_handler(marker = ChargeCard)]
async fn charge_card(_event: OrderCreated) {}

impl RetryAware for ChargeCard {
    type Policy = Retry;
    fn retry_policy(&self) -> Retry {
        Retry::default()
    }
}

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler]
    async fn on_order(&self, _event: OrderCreated) {}
}

#[outbox_handler(marker = MorePayments)]
impl Payments {
    #[outbox_handler]
    async fn on_refund(&self, _event: OrderCreated) {}
}

fn main() {
    let registry = Registry::builder()
        .handler::<ChargeCard>()
        .handler::<Payments>()
        .handler::<MorePayments>()
        .state(Payments);
    assert!(registry.build().is_ok());
}
