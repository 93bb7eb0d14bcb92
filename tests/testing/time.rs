//! The kit's clock: delays pass without waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use outbox::{
    HandlerError, Retry, Scheduled,
    clock::Clock,
    operations::{DeliveryStatus, RecordStatus},
    testing::{FailedBecause, Kit, Step, StepOutcome},
};

use crate::shop::{Script, kit, kit_with, placed, publish, run};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const MICRO: Duration = Duration::from_micros(1);

/// The seconds from the first step to each step.
fn seconds(steps: &[Step]) -> Vec<i64> {
    let first = steps.first().map(|step| step.at).unwrap_or_default();
    let since = |step: &Step| step.at.duration_since(first);
    steps.iter().map(|step| since(step).as_secs()).collect()
}

#[tokio::test]
async fn a_year_of_retries_runs_without_waiting() {
    let daily = Retry::builder().fixed(DAY).max_retries(u32::MAX);
    let kit = kit_with(daily.build().expect("a policy"), Script::fails()).await;
    let id = publish(&kit, "a", 1).await;
    let started = Instant::now();
    let start = kit.now();
    let steps = kit.run_for(365 * DAY).await.expect("a run");
    println!("{} attempts in {:?}", steps.len(), started.elapsed());
    // One attempt at the start, and one after each of 365 days.
    let expected: Vec<i64> = (0..=365).map(|day| day * 24 * 3600).collect();
    assert_eq!(seconds(&steps), expected);
    assert_eq!(kit.now().duration_since(start).as_hours(), 365 * 24);
    assert_eq!(kit.deliveries(id).await.expect("rows")[0].attempt, 367);
}

#[tokio::test]
async fn the_default_policy_has_three_retries_after_1_2_and_4_seconds() {
    let kit = kit(Script::fails()).await;
    let id = publish(&kit, "a", 1).await;
    let steps = kit.run_for(DAY).await.expect("a run");
    assert_eq!(seconds(&steps), [0, 1, 3, 7]);
    let outcomes: Vec<StepOutcome> = steps.iter().map(|step| step.outcome).collect();
    let retry = |seconds| StepOutcome::Retry {
        delay: Duration::from_secs(seconds),
    };
    let because = FailedBecause::RetriesExhausted;
    let expected = [
        retry(1),
        retry(2),
        retry(4),
        StepOutcome::Failed { because },
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(steps[3].error.as_deref(), Some("no card"));
    assert_eq!(kit.status(id).await.expect("a status"), RecordStatus::Split);
    let delivery = &kit.deliveries(id).await.expect("rows")[0];
    assert_eq!(
        (delivery.status, delivery.attempt),
        (DeliveryStatus::Failed, 4)
    );
    assert_eq!(delivery.error.as_deref(), Some("no card"));
}

#[tokio::test]
async fn a_retry_runs_at_its_time_and_not_a_microsecond_before() {
    let policy = Retry::builder()
        .fixed(Duration::from_millis(1))
        .max_retries(9);
    let kit = kit_with(policy.build().expect("a policy"), Script::fails()).await;
    let id = publish(&kit, "a", 1).await;
    assert_eq!(run(&kit).await.len(), 1);
    // Real time does not count.
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(run(&kit).await, []);
    let due_at = kit.deliveries(id).await.expect("rows")[0]
        .due_at
        .expect("a time");
    assert_eq!(due_at.duration_since(kit.now()).as_micros(), 1000);
    kit.advance(Duration::from_millis(1) - MICRO);
    assert_eq!(run(&kit).await, []);
    kit.advance(MICRO);
    assert_eq!(run(&kit).await[0].attempt, 2);
}

#[tokio::test]
async fn a_delayed_record_waits_for_its_time() {
    let kit = kit(Script::succeeds()).await;
    kit.advance(DAY);
    let mut tx = kit.begin().await.expect("a transaction");
    let event = placed("a", 1);
    let sent = kit
        .outbox()
        .schedule(&event)
        .delay(HOUR)
        .send(&mut tx)
        .await;
    let Scheduled::Published { record_id } = sent.expect("a record") else {
        panic!("no duplicate");
    };
    let at = kit.now() + 2 * HOUR;
    let event = placed("b", 2);
    let sent = kit.outbox().schedule(&event).at(at).send(&mut tx).await;
    assert!(matches!(sent, Ok(Scheduled::Published { .. })));
    tx.commit().await.expect("a commit");
    assert_eq!(run(&kit).await, []);
    let status = kit.status(record_id).await.expect("a status");
    assert_eq!(status, RecordStatus::Scheduled);
    kit.advance(HOUR - MICRO);
    assert_eq!(run(&kit).await, []);
    kit.advance(MICRO);
    assert_eq!(run(&kit).await[0].record_id, record_id);
    let status = kit.status(record_id).await.expect("a status");
    assert_eq!(status, RecordStatus::Completed);
    let rest = kit.run_for(DAY).await.expect("a run");
    assert_eq!(rest.iter().map(|step| step.at).collect::<Vec<_>>(), [at]);
}

#[tokio::test]
async fn a_day_of_an_unavailable_bank_loses_no_record_and_uses_up_no_retry() {
    let clock = Arc::new(std::sync::OnceLock::<(
        outbox::clock::ManualClock,
        jiff::Timestamp,
    )>::new());
    let handler_clock = Arc::clone(&clock);
    let counted = AtomicU32::new(0);
    let script = Script::new(move |_, meta| {
        let (clock, start) = handler_clock.get().ok_or("no clock")?;
        if clock.now() < *start + DAY {
            return Err(HandlerError::unavailable("the bank is down"));
        }
        // After that day each order fails three times, which the policy allows, and then succeeds.
        assert_eq!(meta.failure_count(), counted.load(Ordering::Relaxed) % 4);
        match counted.fetch_add(1, Ordering::Relaxed) % 4 {
            3 => Ok(()),
            _ => Err("no card".into()),
        }
    });
    let kit = kit(script).await;
    let start = kit.now();
    assert!(clock.set((kit.clock().clone(), start)).is_ok());
    let mut ids = Vec::new();
    for n in 1..=3 {
        ids.push(publish(&kit, "a", n).await);
    }
    let steps = kit.run_for(DAY - MICRO).await.expect("a run");
    // Only the first record of the lane is retried.
    assert!(steps.len() > 1000, "{}", steps.len());
    assert!(steps.iter().all(|step| step.record_id == ids[0]));
    let delivery = &kit.deliveries(ids[0]).await.expect("rows")[0];
    assert_eq!(delivery.failure_count, 0);
    assert!(delivery.attempt > 1000);
    let steps = kit.run_for(HOUR).await.expect("a run");
    let order: Vec<i64> = steps.iter().map(|step| step.record_id).collect();
    let expected: Vec<i64> = ids.iter().flat_map(|id| [*id; 4]).collect();
    assert_eq!(order, expected);
    for id in ids {
        assert_eq!(
            kit.status(id).await.expect("a status"),
            RecordStatus::Completed
        );
    }
}

#[tokio::test]
async fn a_handler_sees_the_time_of_the_kit() {
    let published = Arc::new(std::sync::OnceLock::<jiff::Timestamp>::new());
    let expected = Arc::clone(&published);
    let script = Script::new(move |_, meta| {
        assert_eq!(Some(&meta.created_at()), expected.get());
        Ok(())
    });
    let mut clock: Option<Arc<dyn Clock>> = None;
    let kit = Kit::new(|builder| {
        clock = Some(builder.shared_clock());
        builder.handler::<crate::shop::charge>().state(script)
    })
    .await
    .expect("a kit");
    kit.advance(100 * DAY);
    let now = kit.now();
    assert_eq!(clock.map(|clock| clock.now()), Some(now));
    assert!(published.set(now).is_ok());
    let mut tx = kit.begin().await.expect("a transaction");
    let events = [placed("a", 1), placed("b", 2)];
    let sent = kit.outbox().publish_all(&mut tx, &events).await;
    sent.expect("records");
    tx.commit().await.expect("a commit");
    publish(&kit, "c", 3).await;
    kit.advance(DAY);
    let steps = run(&kit).await;
    let outcomes = steps.iter().map(|step| step.outcome);
    assert_eq!(outcomes.collect::<Vec<_>>(), [StepOutcome::Completed; 3]);
}
