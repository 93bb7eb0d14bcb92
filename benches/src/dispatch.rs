//! One record through one handler in memory: routing by id, decoding, arguments, the boxed
//! future, panic capture and the retry decision. The reference decodes the same payload and calls
//! the same function, boxed and with panic capture, and does nothing else.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use outbox::{
    Attempt, Decision, ManualClock, Metadata, OutboxEvent, Record, Registry, State, outbox_handler,
};
use serde::{Deserialize, Serialize};

use crate::rounds::{alternate, best, timed};

const RECORDS: u32 = 200_000;
const ROUNDS: usize = 9;

/// About 100 bytes of JSON.
#[derive(Clone, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
    customer: String,
    total_cents: i64,
    currency: String,
}

#[derive(Clone, Default)]
struct Total(Arc<AtomicU64>);

#[outbox_handler(id = "bare")]
async fn bare(event: OrderCreated) {
    std::hint::black_box(event);
}

#[outbox_handler(id = "full", timeout = "30s", when = any)]
async fn full(
    event: OrderCreated,
    meta: &Metadata,
    State(total): State<Total>,
) -> anyhow::Result<()> {
    total.0.fetch_add(
        event.total_cents.unsigned_abs() + u64::from(meta.attempt()),
        Ordering::Relaxed,
    );
    Ok(())
}

fn any(event: &OrderCreated, _meta: &Metadata) -> bool {
    event.total_cents > 0
}

#[outbox_handler(id = "failing")]
async fn failing(event: OrderCreated) -> Result<(), std::fmt::Error> {
    std::hint::black_box(event);
    Err(std::fmt::Error)
}

pub(crate) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let registry = Registry::linked().state(Total::default()).build()?;
    let clock = ManualClock::default();
    let event = OrderCreated {
        order_id: 4711,
        customer: "0190a6c2-7b1e-7d5f-9c1a-5f3f2b9f0a11".to_owned(),
        total_cents: 1250,
        currency: "EUR".to_owned(),
    };
    let record = Arc::new(Record::of(&event, &clock)?);
    println!(
        "dispatch: {RECORDS} records of {} bytes, best of {ROUNDS} rounds",
        record.payload.len()
    );

    for handler in ["bare", "full", "failing"] {
        let ours = || {
            timed(|| {
                runtime.block_on(async {
                    for _ in 0..RECORDS {
                        let decision = registry
                            .dispatch(handler, &record, Attempt::first(), &clock)
                            .await;
                        anyhow::ensure!(!matches!(decision, Decision::NoHandler(_)));
                    }
                    Ok(())
                })
            })
        };
        let by_hand = || {
            timed(|| {
                runtime.block_on(async {
                    for _ in 0..RECORDS {
                        let event = serde_json::from_str(&record.payload)?;
                        let future: futures_util::future::BoxFuture<'_, ()> = Box::pin(bare(event));
                        let outcome = AssertUnwindSafe(future).catch_unwind().await;
                        anyhow::ensure!(outcome.is_ok());
                    }
                    Ok(())
                })
            })
        };
        let (ours, by_hand) = alternate(ROUNDS, ours, by_hand)?;
        let (ours, by_hand) = (best(&ours), best(&by_hand));
        println!(
            "  {handler:8} {:>5} ns per record, by hand {:>5} ns, {:.2} times",
            per_record(ours),
            per_record(by_hand),
            ours.as_secs_f64() / by_hand.as_secs_f64()
        );
    }
    Ok(())
}

fn per_record(time: Duration) -> u128 {
    time.as_nanos() / u128::from(RECORDS)
}
