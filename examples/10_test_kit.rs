//! A test of a handler without a server, and on a clock that the test moves:
//! `cargo run --example test_kit`

use std::time::Duration;

use outbox::{
    Metadata, OutboxEvent, outbox_handler, retryable,
    testing::{Kit, StepOutcome},
};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

#[outbox_handler(id = "charge-card")]
#[retryable(
    exponential(initial = "10m", multiplier = 2.0, max = "1h"),
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
    // The kit has this handler only, even if the program links others.
    let kit = Kit::new(|builder| builder.handler::<charge_card>()).await?;
    kit.publish(&OrderCreated { order_id: 1 }).await?;

    // The kit runs every attempt at the time at which it is due. It does not wait: an hour of its
    // clock passes at once.
    let steps = kit.run_for(Duration::from_secs(3600)).await?;
    for step in &steps {
        println!("{}: {:?}", step.at, step.outcome);
    }
    let outcomes: Vec<StepOutcome> = steps.iter().map(|step| step.outcome).collect();
    let retry = |minutes: u64| StepOutcome::Retry {
        delay: Duration::from_secs(60 * minutes),
    };
    anyhow::ensure!(outcomes == [retry(10), retry(20), StepOutcome::Completed]);
    Ok(())
}
