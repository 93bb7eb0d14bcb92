//! `Kit::restore` puts a record into a state that a run would need many steps to reach.

use std::time::Duration;

use outbox::{
    operations::{DeliveryStatus, RecordStatus},
    testing::{FailedBecause, Kit, KitError, Restore, Step, StepOutcome},
};

use crate::shop::{Forgotten, Script, kit, kit_of_two, publish, run};

const SECOND: Duration = Duration::from_secs(1);

async fn restore(kit: &Kit, id: i64, state: Restore<'_>) {
    kit.restore(id, state).await.expect("a restored record");
}

/// Record, handler and attempt of each step.
fn summary(steps: &[Step]) -> Vec<(i64, &str, u32)> {
    (steps.iter())
        .map(|step| (step.record_id, &*step.handler, step.attempt))
        .collect()
}

#[tokio::test]
async fn a_run_continues_from_each_restored_state() {
    let kit = kit_of_two(Script::succeeds()).await;
    let id = publish(&kit, "a", 1).await;
    let both = [(id, "charge", 1), (id, "mail", 1)];
    // The second round restores each state from another one: the state before does not matter.
    for _ in 0..2 {
        restore(&kit, id, Restore::Pending).await;
        assert_eq!(
            kit.status(id).await.expect("a status"),
            RecordStatus::Pending
        );
        assert_eq!(summary(&run(&kit).await), both);
        assert_eq!(
            kit.status(id).await.expect("a status"),
            RecordStatus::Completed
        );

        restore(&kit, id, Restore::Delayed(SECOND)).await;
        assert_eq!(
            kit.status(id).await.expect("a status"),
            RecordStatus::Scheduled
        );
        assert_eq!(run(&kit).await, []);
        kit.advance(SECOND);
        assert_eq!(summary(&run(&kit).await), both);

        restore(&kit, id, Restore::Unhandled).await;
        assert_eq!(
            kit.status(id).await.expect("a status"),
            RecordStatus::Unhandled
        );
        assert_eq!(summary(&run(&kit).await), both);

        restore(&kit, id, Restore::Completed).await;
        assert_eq!(
            kit.status(id).await.expect("a status"),
            RecordStatus::Completed
        );
        assert_eq!(run(&kit).await, []);

        let (handler, attempt) = ("mail", 3);
        restore(&kit, id, Restore::Waiting { handler, attempt }).await;
        let delivery = &kit.deliveries(id).await.expect("rows")[0];
        let found = (&*delivery.handler, delivery.status, delivery.failure_count);
        assert_eq!(found, (handler, DeliveryStatus::Waiting, 2));
        assert_eq!(summary(&run(&kit).await), [(id, "mail", 3)]);
        assert_eq!(
            kit.status(id).await.expect("a status"),
            RecordStatus::Completed
        );

        let due_in = SECOND;
        let (handler, attempt) = ("charge", 2);
        let retrying = Restore::Retrying {
            handler,
            attempt,
            due_in,
        };
        restore(&kit, id, retrying).await;
        assert_eq!(run(&kit).await, []);
        let step = &kit.run_for(SECOND).await.expect("a run")[0];
        assert_eq!((&*step.handler, step.attempt), ("charge", 2));
        assert_eq!(step.at, kit.now());

        let (handler, attempt, error) = ("mail", 4, "no address");
        let failed = Restore::Failed {
            handler,
            attempt,
            error,
        };
        restore(&kit, id, failed).await;
        let deliveries = kit.deliveries(id).await.expect("rows");
        assert_eq!(deliveries.len(), 1);
        assert_eq!(deliveries[0].error.as_deref(), Some(error));
        assert_eq!(deliveries[0].status, DeliveryStatus::Failed);
        assert_eq!(kit.run_for(1000 * SECOND).await.expect("a run"), []);
    }
}

#[tokio::test]
async fn a_record_can_be_restored_right_before_its_last_attempt() {
    let kit = kit(Script::fails()).await;
    let id = publish(&kit, "a", 1).await;
    let (handler, attempt) = ("charge", 4);
    restore(&kit, id, Restore::Waiting { handler, attempt }).await;
    let step = kit.step().await.expect("a step").expect("a step");
    let because = FailedBecause::RetriesExhausted;
    assert_eq!(step.outcome, StepOutcome::Failed { because });
    assert_eq!(kit.step().await.expect("no step"), None);
}

#[tokio::test]
async fn a_failed_record_blocks_its_lane_until_it_is_restored() {
    let script = Script::new(|event, meta| match (event.n, meta.attempt()) {
        (1, 1) => Err(outbox::HandlerError::permanent("no card")),
        _ => Ok(()),
    });
    let kit = kit(script).await;
    let mut ids = Vec::new();
    for n in 1..=3 {
        ids.push(publish(&kit, "a", n).await);
    }
    assert_eq!(summary(&run(&kit).await), [(ids[0], "charge", 1)]);
    let waiting = &kit.deliveries(ids[1]).await.expect("rows")[0];
    assert_eq!(waiting.status, DeliveryStatus::Waiting);
    assert_eq!(kit.run_for(SECOND * 9999).await.expect("a run"), []);
    let (handler, attempt, due_in) = ("charge", 2, Duration::ZERO);
    let retrying = Restore::Retrying {
        handler,
        attempt,
        due_in,
    };
    restore(&kit, ids[0], retrying).await;
    let expected = [
        (ids[0], "charge", 2),
        (ids[1], "charge", 1),
        (ids[2], "charge", 1),
    ];
    assert_eq!(summary(&run(&kit).await), expected);
}

#[tokio::test]
async fn a_restored_failure_blocks_later_records_of_its_key() {
    let kit = kit(Script::succeeds()).await;
    let first = publish(&kit, "a", 1).await;
    let (handler, attempt, error) = ("charge", 1, "no card");
    let failed = Restore::Failed {
        handler,
        attempt,
        error,
    };
    restore(&kit, first, failed).await;
    let (second, other) = (publish(&kit, "a", 2).await, publish(&kit, "b", 1).await);
    assert_eq!(summary(&run(&kit).await), [(other, "charge", 1)]);
    restore(&kit, first, Restore::Completed).await;
    assert_eq!(summary(&run(&kit).await), [(second, "charge", 1)]);
}

#[tokio::test]
async fn the_error_of_a_refused_restore_names_the_record_or_handler() {
    let kit = kit(Script::succeeds()).await;
    let error = kit
        .restore(77, Restore::Pending)
        .await
        .expect_err("no record");
    assert!(matches!(
        error,
        outbox::Error::Testing(KitError::NoSuchRecord(77))
    ));
    let id = kit.publish(&Forgotten {}).await.expect("a record");
    for handler in ["charge", "chrage"] {
        let state = Restore::Waiting {
            handler,
            attempt: 1,
        };
        let error = kit.restore(id, state).await.expect_err("no handler");
        assert!(error.to_string().contains(handler), "{error}");
        assert_eq!(
            kit.status(id).await.expect("a status"),
            RecordStatus::Pending
        );
    }
}
