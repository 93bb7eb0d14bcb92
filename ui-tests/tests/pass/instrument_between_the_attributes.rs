#![deny(warnings)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;
use tracing::instrument;

#[outbox_handler]
#[instrument(skip_all)]
#[retryable(max_retries = 1)]
async fn handler_first(_event: OrderCreated) {}

#[retryable(max_retries = 1)]
#[tracing::instrument(skip_all)]
#[outbox_handler]
async fn retryable_first(_event: OrderCreated) {}

#[instrument(skip_all)]
#[outbox_handler]
#[retryable(max_retries = 1)]
async fn above_both(_event: OrderCreated) {}

#[retryable(max_retries = 1)]
#[outbox_handler]
#[instrument(skip_all, err)]
async fn below_both(_event: OrderCreated) -> Result<(), outbox_ui_tests::Declined> {
    Ok(())
}

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler]
    #[instrument(skip_all)]
    #[retryable(max_retries = 1)]
    async fn on_order(&self, _event: OrderCreated) {}
}

fn main() {}
