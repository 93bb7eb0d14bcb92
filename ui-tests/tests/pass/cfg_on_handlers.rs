//! A handler that is configured away leaves nothing behind, wherever the `#[cfg]` stands.
#![deny(warnings)]
#![allow(unused_imports)] // of what was configured away

use outbox::{Handler, Metadata, Registry, outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[cfg(any())]
#[outbox_handler]
async fn away_above(_event: OrderCreated) {}

#[outbox_handler]
#[cfg(any())]
#[retryable(max_retries = 1)]
async fn away_below(_event: OrderCreated) {}

#[outbox_handler(id = "there")]
#[cfg(all())]
async fn there(_event: OrderCreated) {}

struct Payments;

#[outbox_handler]
impl Payments {
    #[cfg(any())]
    #[outbox_handler]
    async fn away_above(&self, _event: OrderCreated) {}

    #[outbox_handler]
    #[cfg(any())]
    async fn away_below(&self, _event: OrderCreated) {}

    #[outbox_handler(id = "method")]
    #[cfg(all())]
    async fn there(&self, _event: OrderCreated) {}

    #[cfg_attr(any(), outbox_handler, allow(unused))]
    #[cfg_attr(any(), retryable(max_retries = 1))]
    pub async fn not_marked(&self, _event: OrderCreated) {}

    #[cfg_attr(all(), outbox_handler(id = "marked"), allow(unused))]
    #[cfg_attr(any(), retryable(max_retries = 7))]
    #[cfg_attr(not(any()), retryable(max_retries = 8))]
    async fn marked(&self, _event: OrderCreated) {}

    #[cfg_attr(any(), retryable(max_retries = 7))]
    #[outbox_handler(id = "unchanged")]
    async fn unchanged(&self, _event: OrderCreated) {}
}

#[outbox_handler]
#[cfg(any())]
impl Handler<OrderCreated> for Payments {
    async fn handle(&self, _event: OrderCreated, _meta: &Metadata) {}
}

fn main() {
    let registry = Registry::linked().state(Payments).build().unwrap();
    let ids: Vec<_> = registry.handlers().iter().map(|handler| handler.id).collect();
    assert_eq!(ids, ["marked", "method", "there", "unchanged"]);
    let max_retries = |id| registry.handler(id).unwrap().policy().max_retries();
    assert_eq!((max_retries("marked"), max_retries("unchanged")), (8, 3));
    Registry::builder().handler::<there>().build().unwrap();
}
