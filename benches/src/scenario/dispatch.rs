//! One record through one handler in memory: routing by id, decoding, arguments, the boxed
//! future, panic capture and the retry decision. The reference only decodes the same payload and
//! calls the same function, boxed and with panic capture.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use futures_util::FutureExt as _;
use outbox::{
    __private::{Attempt, Decision},
    Metadata, OutboxEvent, Registry, State,
    clock::ManualClock,
    outbox_handler,
    record::Record,
};
use serde::{Deserialize, Serialize};

use crate::{
    progress::Progress,
    rounds::{Measured, alternate, best},
    verdict::Verdict,
};

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

/// These figures have no goal.
pub(crate) async fn run(records: u64, rounds: usize) -> anyhow::Result<Vec<Verdict>> {
    let registry = Registry::builder()
        .handler::<bare>()
        .handler::<full>()
        .handler::<failing>()
        .state(Total::default())
        .build()?;
    let clock = ManualClock::default();
    let event = OrderCreated {
        order_id: 4711,
        customer: "0190a6c2-7b1e-7d5f-9c1a-5f3f2b9f0a11".to_owned(),
        total_cents: 1250,
        currency: "EUR".to_owned(),
    };
    let record = Arc::new(Record::of(&event, &clock)?);
    let measured = |start: Instant| Measured {
        records,
        time: start.elapsed(),
        usage: None,
    };

    let mut verdicts = Vec::new();
    for handler in ["bare", "full", "failing"] {
        let ours = async || {
            let start = Instant::now();
            for _ in 0..records {
                let dispatched = registry.dispatch(handler, &record, Attempt::first(), &clock);
                anyhow::ensure!(!matches!(dispatched.await, Decision::NoHandler(_)));
            }
            Ok(measured(start))
        };
        let by_hand = async || {
            let start = Instant::now();
            for _ in 0..records {
                let event = serde_json::from_str(&record.payload)?;
                let future: futures_util::future::BoxFuture<'_, ()> = Box::pin(bare(event));
                let outcome = AssertUnwindSafe(future).catch_unwind().await;
                anyhow::ensure!(outcome.is_ok());
            }
            Ok(measured(start))
        };
        let progress = Progress::new();
        let (ours, by_hand) = alternate(&progress, "dispatch", rounds, ours, by_hand).await?;
        let each = |run: Measured| 1e9 / run.rate();
        let pair = (each(best(&ours)?), each(best(&by_hand)?));
        let name = format!("dispatch/{handler}");
        verdicts.push(Verdict::less_is_better(name, None, "ns/record", pair, None));
    }
    Ok(verdicts)
}
