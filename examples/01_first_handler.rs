//! A handler that fails twice and then succeeds, tried in memory: `cargo run --example first_handler`

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use outbox::{
    Attempt, Clock as _, Decision, ManualClock, Metadata, OutboxEvent, Record, Registry, State,
    outbox_handler, retryable,
};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
    total_cents: i64,
}

/// A bank that is down for the first two calls.
#[derive(Clone, Default)]
struct Bank {
    calls: Arc<AtomicU32>,
}

impl Bank {
    fn charge(&self, order_id: i64, cents: i64) -> Result<(), std::io::Error> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(std::io::Error::other("the bank does not answer")),
            _ => {
                println!("  charged {cents} cents for order {order_id}");
                Ok(())
            }
        }
    }
}

#[outbox_handler(id = "charge-card")]
#[retryable(
    exponential(initial = "500ms", multiplier = 2.0, max = "10s"),
    max_retries = 3
)]
async fn charge_card(
    event: OrderCreated,
    meta: &Metadata,
    State(bank): State<Bank>,
) -> Result<(), std::io::Error> {
    println!("  attempt {} of event {}", meta.attempt(), meta.event_id());
    bank.charge(event.order_id, event.total_cents)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::linked().state(Bank::default()).build()?;
    println!("{}\n", registry.handlers());

    // The clock is moved by hand: nothing here waits.
    let clock = ManualClock::default();
    let event = OrderCreated {
        order_id: 1,
        total_cents: 1250,
    };
    let record = Arc::new(Record::of(&event, &clock)?);
    let mut attempt = Attempt::first();
    loop {
        println!("{}", clock.now());
        match registry
            .dispatch("charge-card", &record, attempt, &clock)
            .await
        {
            Decision::RetryAt {
                delay, next, error, ..
            } => {
                println!("  failed: {error}; again in {delay:?}");
                clock.advance(delay);
                attempt = next;
            }
            decision => {
                println!("  {decision:?}");
                return Ok(());
            }
        }
    }
}
