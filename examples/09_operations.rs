//! The operations for a person on call: `cargo run --example operations`

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use outbox::{
    HandlerError, Outbox, OutboxEvent, State,
    operations::{Change, Filter, Precision},
    outbox_handler,
};
use outbox_examples::{say, sqlite, until};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "parcel.step", key = parcel)]
struct ParcelStep {
    parcel: String,
    step: u32,
}

/// Whether the label printer has paper.
#[derive(Clone, Default)]
struct Paper(Arc<AtomicBool>);

#[outbox_handler(id = "label")]
async fn label(event: ParcelStep, State(paper): State<Paper>) -> Result<(), HandlerError> {
    let ParcelStep { parcel, step } = event;
    if parcel == "lost" {
        return Err(HandlerError::permanent("no such parcel"));
    }
    if !paper.0.load(Ordering::Relaxed) {
        return Err(HandlerError::permanent("out of paper"));
    }
    say(format!("  {parcel}: label {step} is printed"));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    let paper = Paper::default();
    let outbox = Outbox::builder(db.pool.clone())
        .state(paper.clone())
        .build()
        .await?;
    let dispatcher = outbox.start().await?;
    let operations = outbox.operations();

    let mut tx = db.pool.begin().await?;
    for (parcel, steps) in [("red", 3), ("blue", 2), ("lost", 1)] {
        for step in 1..=steps {
            let event = ParcelStep {
                parcel: parcel.to_owned(),
                step,
            };
            outbox.publish(&mut tx, &event).await?;
        }
    }
    tx.commit().await?;

    // The first step of each parcel has failed. Later records of the same lane wait.
    let counts = until(&outbox, |now| now.failed == 3 && now.waiting == 3).await?;
    let (failed, waiting) = (counts.failed, counts.waiting);
    say(format!("{failed} have failed, {waiting} wait behind them"));
    for lane in operations.blocked_lanes(10).await? {
        let (record, behind) = (lane.record_id, lane.waiting);
        say(format!(
            "  {}: record {record}, {behind} behind it",
            lane.key
        ));
    }

    // Failures with the same cause have the same fingerprint.
    let errors = operations.counts_by_error(Precision::Exact).await?.items;
    for error in &errors {
        say(format!("  {} x {}", error.count, error.error));
    }
    let [no_paper, no_parcel] = errors.as_slice() else {
        anyhow::bail!("{errors:?}")
    };

    // A paused handler gets no records.
    anyhow::ensure!(operations.pause("label").await? == Change::Applied);
    say("label is paused, the printer gets paper, and the records that lacked paper are replayed");
    paper.0.store(true, Ordering::Relaxed);
    let lacked_paper = Filter::new().fingerprint(&no_paper.fingerprint);
    anyhow::ensure!(operations.replay_all(&lacked_paper).await? == 2);
    anyhow::ensure!(operations.paused().await? == ["label"]);
    anyhow::ensure!(operations.resume("label").await? == Change::Applied);
    say("label is resumed:");
    until(&outbox, |now| now.completed == 5).await?;

    let lost = no_parcel.oldest_record_id;
    anyhow::ensure!(operations.discard(lost, "label").await? == Change::Applied);
    let counts = until(&outbox, |now| now.discarded == 1).await?;
    say("the lost parcel is discarded; no record is left to deliver");
    anyhow::ensure!(counts.failed + counts.waiting + counts.retrying == 0);
    dispatcher.shutdown().await?;
    Ok(())
}
