//! The service that a handler calls is unavailable for a day.

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

/// The states of the called service.
const UP: u8 = 0;
const DOWN: u8 = 1;
/// The service answers with errors.
const FAILS: u8 = 2;

struct Day {
    kit: Kit,
    service: Arc<AtomicU8>,
    seen: Seen,
    calls: Arc<AtomicU32>,
}

/// A kit with three retries, at most 15 minutes apart. `reports_unavailable` says whether the handler
/// returns `unavailable` while the service is down.
async fn day(reports_unavailable: bool) -> Day {
    let quarter = Duration::from_secs(15 * 60);
    let policy = Retry::builder()
        .exponential(Duration::from_secs(1), 2.0, quarter)
        .max_retries(3)
        .build()
        .expect("a policy");
    let (service, seen, calls) = (Arc::<AtomicU8>::default(), Seen::default(), Arc::default());
    let script = {
        let (service, seen, calls) = (service.clone(), seen.clone(), Arc::clone(&calls));
        Script::new(move |event, _| {
            let calls: &AtomicU32 = &calls;
            calls.fetch_add(1, Ordering::Relaxed);
            match service.load(Ordering::Relaxed) {
                UP => {
                    seen.add(format!("{}{}", event.key, event.n));
                    Ok(())
                }
                DOWN if reports_unavailable => Err(HandlerError::unavailable("connection refused")),
                _ => Err("connection refused".into()),
            }
        })
    };
    Day {
        kit: kit_with(policy, script).await,
        service,
        seen,
        calls,
    }
}

impl Day {
    /// Passes a day on which the service is down and one event of each key is published every hour.
    async fn pass(&self) -> Vec<i64> {
        self.service.store(DOWN, Ordering::Relaxed);
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

    /// Checks that each key has all its events, in order.
    fn check_order(&self) {
        for key in KEYS {
            let of_key: Vec<String> = (self.seen.all().into_iter())
                .filter(|s| s.starts_with(key))
                .collect();
            let expected: Vec<String> = (0..24).map(|n| format!("{key}{n}")).collect();
            assert_eq!(of_key, expected);
        }
    }
}

#[tokio::test]
async fn a_handler_that_reports_an_unavailable_service_uses_up_no_retry() {
    let day = day(true).await;
    let ids = day.pass().await;
    let calls = day.calls.load(Ordering::Relaxed);
    assert!(
        calls > 250,
        "far more than three retries of each key: {calls}"
    );
    for id in &ids[..3] {
        let delivery = &day.kit.deliveries(*id).await.expect("rows")[0];
        assert_eq!(delivery.failure_count, 0, "{delivery:?}");
    }
    // The service answers with errors now. No retry was used up, so each key has three.
    day.service.store(FAILS, Ordering::Relaxed);
    let steps = day.kit.run_for(HOUR / 2).await.expect("a run");
    let retries = steps
        .iter()
        .filter(|step| matches!(step.outcome, StepOutcome::Retry { .. }));
    assert_eq!(retries.count(), 9, "{steps:?}");
    day.service.store(UP, Ordering::Relaxed);
    let _ = day
        .kit
        .outbox()
        .operations()
        .replay_all(&Filter::new())
        .await
        .expect("a replay");
    run(&day.kit).await;
    day.all_are(&ids, RecordStatus::Completed).await;
    day.check_order();
}

#[tokio::test]
async fn a_handler_that_reports_plain_errors_loses_no_record() {
    let day = day(false).await;
    let ids = day.pass().await;
    // The first record of each key had four attempts; the others wait behind it.
    assert_eq!(day.calls.load(Ordering::Relaxed), 4 * 3);
    day.all_are(&ids, RecordStatus::Split).await;
    day.service.store(UP, Ordering::Relaxed);
    run(&day.kit).await;
    assert!(day.seen.all().is_empty(), "the records wait for a replay");
    let _ = day
        .kit
        .outbox()
        .operations()
        .replay_all(&Filter::new())
        .await
        .expect("a replay");
    run(&day.kit).await;
    day.all_are(&ids, RecordStatus::Completed).await;
    day.check_order();
}
