//! A retry policy of your own, set by the handler itself: `cargo run --example trait_policy`

use std::time::Duration;

use outbox::{
    HandlerError, Metadata, Outbox, OutboxEvent, RetryAware, RetryPolicy, operations::RecordStatus,
    outbox_handler, retry::PolicySource, retryable,
};
use outbox_examples::{say, sqlite, until};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "rate.requested")]
struct RateRequested {
    amount: String,
}

/// Delays of 10 ms, 20 ms, 30 ms and so on. An amount that cannot be parsed is not retried.
struct Patient {
    step: Duration,
}

impl RetryPolicy for Patient {
    fn should_retry(&self, error: &HandlerError) -> bool {
        !error.is::<std::num::ParseIntError>()
    }
    fn next_delay(&self, failure_count: u32) -> Duration {
        self.step * failure_count.min(10)
    }
    fn max_retries(&self) -> u32 {
        20
    }
}

#[outbox_handler(id = "fetch-rate")]
#[retryable(max_retries = 1)] // the trait wins, and the report shows it
async fn fetch_rate(event: RateRequested, meta: &Metadata) -> anyhow::Result<()> {
    let (attempt, amount) = (meta.attempt(), &event.amount);
    say(format!("  attempt {attempt} for {amount}"));
    let amount: i64 = amount.parse()?;
    anyhow::ensure!(attempt > 3, "no rate for {amount} yet");
    Ok(())
}

/// `#[outbox_handler]` generates a type with the function's name, which stands for the handler.
impl RetryAware for fetch_rate {
    type Policy = Patient;
    fn retry_policy(&self) -> Patient {
        let step = Duration::from_millis(10);
        Patient { step }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    let outbox = Outbox::builder(db.pool.clone()).build().await?;
    let handlers = outbox.handlers();
    println!("{handlers}\n");
    let source = handlers.get("fetch-rate").map(|handler| handler.source);
    anyhow::ensure!(source == Some(PolicySource::Trait));

    let dispatcher = outbox.start().await?;
    let mut tx = db.pool.begin().await?;
    for amount in ["12", "a dozen"] {
        let event = RateRequested {
            amount: amount.to_owned(),
        };
        outbox.publish(&mut tx, &event).await?;
    }
    tx.commit().await?;

    until(&outbox, |now| now.completed == 1 && now.failed == 1).await?;
    dispatcher.shutdown().await?;
    say("12 took four attempts; a dozen failed at once:");
    let Some(dozen) = outbox.operations().inspect(2).await? else {
        anyhow::bail!("record 2 is gone")
    };
    anyhow::ensure!(dozen.status == RecordStatus::Split && dozen.failures.len() == 1);
    for failure in dozen.failures {
        say(format!("  attempt {}: {}", failure.attempt, failure.error));
    }
    Ok(())
}
