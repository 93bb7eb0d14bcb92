//! What a handler talks to is gone for a day.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
    time::Duration,
};

use outbox::{
    HandlerError, Retry,
    operations::{Filter, RecordStatus},
    testing::{Kit, StepOutcome},
};

use crate::shop::{Script, Seen, kit_with, publish, run};

const HOUR: Duration = Duration::from_secs(3600);
const KEYS: [&str; 3] = ["a", "b", "c"];

/// The other side, as its operator sees it.
const UP: u8 = 0;
const DOWN: u8 = 1;
/// Answers, but with errors.
const FAILS: u8 = 2;

struct Day {
    kit: Kit,
    other_side: Arc<AtomicU8>,
    seen: Seen,
    calls: Arc<AtomicU32>,
}

/// Three retries, a quarter of an hour apart at most.
async fn day(says_so: bool) -> Day {
    let quarter = Duration::from_secs(15 * 60);
    let policy = Retry::builder()
        .exponential(Duration::from_secs(1), 2.0, quarter)
        .max_retries(3)
        .build()
        .expect("a policy");
    let (other_side, seen, calls) = (Arc::<AtomicU8>::default(), Seen::default(), Arc::default());
    let script = {
        let (other_side, seen, calls) = (other_side.clone(), seen.clone(), Arc::clone(&calls));
        Script::new(move |event, _| {
            let calls: &AtomicU32 = &calls;
            calls.fetch_add(1, Ordering::Relaxed);
            match other_side.load(Ordering::Relaxed) {
                UP => {
                    seen.add(format!("{}{}", event.key, event.n));
                    Ok(())
                }
                DOWN if says_so => Err(HandlerError::unavailable("connection refused")),
                _ => Err("connection refused".into()),
            }
        })
    };
    Day {
        kit: kit_with(policy, script).await,
        other_side,
        seen,
        calls,
    }
}

impl Day {
    /// A day on which the other side is down, and one event of each key is published every hour.
    async fn goes_by(&self) -> Vec<i64> {
        self.other_side.store(DOWN, Ordering::Relaxed);
        let mut ids = Vec::new();
        for hour in 0..24 {
            for key in KEYS {
                ids.push(publish(&self.kit, key, hour).await);
            }
            self.kit.run_for(HOUR).await.expect("a run");
        }
        assert!(self.seen.all().is_empty());
        ids
    }

    async fn all_are(&self, ids: &[i64], status: RecordStatus) {
        for id in ids {
            assert_eq!(self.kit.status(*id).await.expect("a status"), status);
        }
    }

    fn delivered_in_order(&self) {
        for key in KEYS {
            let of_key: Vec<String> = self.seen.all();
            let of_key: Vec<String> = of_key.into_iter().filter(|s| s.starts_with(key)).collect();
            let expected: Vec<String> = (0..24).map(|n| format!("{key}{n}")).collect();
            assert_eq!(of_key, expected);
        }
    }
}

#[tokio::test]
async fn whoever_says_that_the_other_side_is_unavailable_uses_up_no_retry() {
    let day = day(true).await;
    let ids = day.goes_by().await;
    let calls = day.calls.load(Ordering::Relaxed);
    assert!(
        calls > 250,
        "far more than three retries of each key: {calls}"
    );
    for id in &ids[..3] {
        let delivery = &day.kit.deliveries(*id).await.expect("rows")[0];
        assert_eq!(delivery.failure_count, 0, "{delivery:?}");
    }
    // Back, but not well: the three retries are all still there, and are used now.
    day.other_side.store(FAILS, Ordering::Relaxed);
    let steps = day.kit.run_for(HOUR / 2).await.expect("a run");
    let retries = steps
        .iter()
        .filter(|step| matches!(step.outcome, StepOutcome::Retry { .. }));
    assert_eq!(retries.count(), 9, "{steps:?}");
    day.other_side.store(UP, Ordering::Relaxed);
    let _ = day
        .kit
        .outbox()
        .operations()
        .replay_all(&Filter::new())
        .await
        .expect("a replay");
    run(&day.kit).await;
    day.all_are(&ids, RecordStatus::Completed).await;
    day.delivered_in_order();
}

#[tokio::test]
async fn whoever_does_not_say_so_has_lost_nothing_either() {
    let day = day(false).await;
    let ids = day.goes_by().await;
    // Four attempts at the first of each key; the others wait behind it.
    assert_eq!(day.calls.load(Ordering::Relaxed), 4 * 3);
    day.all_are(&ids, RecordStatus::Split).await;
    day.other_side.store(UP, Ordering::Relaxed);
    run(&day.kit).await;
    assert!(day.seen.all().is_empty(), "somebody has to replay it");
    let _ = day
        .kit
        .outbox()
        .operations()
        .replay_all(&Filter::new())
        .await
        .expect("a replay");
    run(&day.kit).await;
    day.all_are(&ids, RecordStatus::Completed).await;
    day.delivered_in_order();
}
