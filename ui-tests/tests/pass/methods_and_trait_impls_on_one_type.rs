#![deny(warnings)]

use outbox::{
    AnyEvent, Handler, HandlerError, Metadata, OutboxEvent, Registry, State, outbox_handler,
    retryable,
};
use outbox_ui_tests::{Bank, Declined, OrderCreated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.paid")]
struct OrderPaid {}

struct Payments {
    limit: i64,
}

#[outbox_handler]
#[retryable(max_retries = 1)]
impl Handler<OrderCreated> for Payments {
    async fn handle(&self, event: OrderCreated, _meta: &Metadata) -> Result<(), Declined> {
        assert!(event.order_id < self.limit);
        Ok(())
    }
}

#[retryable(max_retries = 2)]
#[outbox_handler(id = "payments.paid")]
impl Handler<OrderPaid> for Payments {
    fn handle(&self, _event: OrderPaid, _meta: &Metadata) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

#[outbox_handler]
impl Payments {
    const EVENTS: &'static str = "order.";

    #[outbox_handler(when = wanted, fallback = give_up, events = ["order.*"])]
    pub async fn on_any(&self, event: AnyEvent, State(_bank): State<Bank>) -> Result<(), String> {
        assert!(event.name().starts_with(Self::EVENTS));
        Ok(())
    }

    #[outbox_handler]
    #[retryable(max_retries = 3)]
    pub async fn on_paid(&self, _event: OrderPaid, _meta: &Metadata) {}
}

fn wanted(_event: &AnyEvent, meta: &Metadata) -> bool {
    !meta.is_retry()
}

async fn give_up(_event: AnyEvent, _error: &HandlerError, _bank: State<Bank>) {}

fn main() {
    let _ = Registry::builder()
        .handler::<Payments>()
        .handler_for::<Payments, OrderCreated>()
        .handler_for::<Payments, OrderPaid>()
        .state(Payments { limit: 7 });
}
