//! A handler without a database, on a clock that is moved by hand, as a unit test would do it:
//! `cargo run --example handler_in_memory`

use std::{sync::Arc, time::Duration};

use outbox::{
    __private::{Attempt, Completion, Decision},
    Metadata, OutboxEvent, Registry,
    clock::{Clock as _, ManualClock},
    outbox_handler,
    record::Record,
    retryable,
};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

#[outbox_handler(id = "charge-card")]
#[retryable(
    exponential(initial = "500ms", multiplier = 2.0, max = "1h"),
    max_retries = 3
)]
async fn charge_card(event: OrderCreated, meta: &Metadata) -> Result<(), std::io::Error> {
    let (order, attempt) = (event.order_id, meta.attempt());
    println!("  attempt {attempt} for order {order}");
    match attempt {
        1 | 2 => Err(std::io::Error::other("the bank does not answer")),
        _ => Ok(()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    // Only this handler, whatever else is linked.
    let registry = Registry::builder().handler::<charge_card>().build()?;
    // Nothing here waits.
    let clock = ManualClock::default();
    let start = clock.now();
    let event = OrderCreated { order_id: 1 };
    let record = Arc::new(Record::of(&event, &clock)?);
    let mut attempt = Attempt::first();
    let decision = loop {
        println!("{}", clock.now());
        let decision = registry.dispatch("charge-card", &record, attempt, &clock);
        match decision.await {
            Decision::RetryAt {
                delay, next, error, ..
            } => {
                println!("  failed: {error}; again in {delay:?}");
                clock.advance(delay);
                attempt = next;
            }
            decision => break decision,
        }
    };
    println!("  {decision:?}");
    anyhow::ensure!(matches!(decision, Decision::Completed(Completion::Handled)));
    let took = clock.now().duration_since(start);
    anyhow::ensure!(took.unsigned_abs() == Duration::from_millis(1500));
    Ok(())
}
