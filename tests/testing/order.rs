//! The order in which the kit runs records and handlers.

use std::sync::{Arc, OnceLock};

use outbox::{HandlerError, Outbox, OutboxEvent, State, outbox_handler, testing::Kit};
use sqlx::{Sqlite, SqlitePool};

use crate::shop::{Placed, Script, Seen, charge, kit, kit_of_two, placed, publish, run};

/// Only the second event of key `a` fails, in the handler `charge`.
fn second_of_a_fails() -> Script {
    Script::new(
        |event, meta| match (&*event.key, event.n, meta.handler_id()) {
            ("a", 2, "charge") => Err("no card".into()),
            _ => Ok(()),
        },
    )
}

#[tokio::test]
async fn the_kit_runs_records_by_id_and_handlers_by_name() {
    let kit = kit_of_two(second_of_a_fails()).await;
    for (key, n) in [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)] {
        publish(&kit, key, n).await;
    }
    let steps = run(&kit).await;
    let order: Vec<(i64, &str)> = steps
        .iter()
        .map(|step| (step.record_id, &*step.handler))
        .collect();
    // Record 4 is behind record 3 in the lane (a, charge), and not in (a, mail).
    let expected = [
        (1, "charge"),
        (1, "mail"),
        (2, "charge"),
        (2, "mail"),
        (3, "charge"),
        (3, "mail"),
        (4, "mail"),
        (5, "charge"),
        (5, "mail"),
    ];
    assert_eq!(order, expected);
}

#[tokio::test]
async fn a_lane_continues_in_order_after_a_retry() {
    let script = Script::new(|event, meta| match event.n {
        1 if meta.attempt() < 3 => Err("no card".into()),
        _ => Ok(()),
    });
    let kit = kit(script).await;
    for n in 1..=40 {
        publish(&kit, "a", n).await;
    }
    assert_eq!(run(&kit).await.len(), 1);
    let steps = kit
        .run_for(std::time::Duration::from_secs(3))
        .await
        .expect("a run");
    let order: Vec<(i64, u32)> = steps
        .iter()
        .map(|step| (step.record_id, step.attempt))
        .collect();
    let rest = (2..=40).map(|id| (id, 1));
    let expected: Vec<(i64, u32)> = [(1, 2), (1, 3)].into_iter().chain(rest).collect();
    assert_eq!(order, expected);
}

#[tokio::test]
async fn a_step_runs_only_one_handler_of_a_record() {
    let kit = kit_of_two(Script::succeeds()).await;
    let id = publish(&kit, "a", 1).await;
    let step = kit.step().await.expect("a step").expect("a step");
    assert_eq!(step.handler, "charge");
    let deliveries = kit.deliveries(id).await.expect("rows");
    let left: Vec<&str> = (deliveries.iter())
        .map(|delivery| &*delivery.handler)
        .collect();
    assert_eq!(left, ["mail"]);
    let step = kit.step().await.expect("a step").expect("a step");
    assert_eq!((&*step.handler, step.attempt), ("mail", 1));
    assert_eq!(kit.step().await.expect("no step"), None);
    let status = kit.status(id).await.expect("a status");
    assert_eq!(status, outbox::operations::RecordStatus::Completed);
}

/// Each step is one invocation.
#[tokio::test]
async fn single_steps_and_one_run_have_the_same_order() {
    let mut runs = Vec::new();
    for by_step in [true, false] {
        let seen = Seen::default();
        let calls = seen.clone();
        let script = Script::new(move |event, meta| {
            calls.add(format!("{} {} {}", event.key, event.n, meta.attempt()));
            match (&*event.key, meta.attempt()) {
                // The delivery is due again at once.
                ("b", 1..=3) => Err(HandlerError::retry_after(
                    std::time::Duration::ZERO,
                    "again",
                )),
                ("c", _) => Err("later".into()),
                _ => Ok(()),
            }
        });
        let kit = kit_of_two(script).await;
        for n in 1..=3 {
            for key in ["a", "b", "c"] {
                publish(&kit, key, n).await;
            }
        }
        let mut steps = Vec::new();
        if by_step {
            while let Some(step) = kit.step().await.expect("a step") {
                steps.push(step);
                assert_eq!(seen.all().len(), steps.len());
            }
        } else {
            steps = run(&kit).await;
        }
        let order: Vec<(i64, String, u32)> = steps
            .into_iter()
            .map(|step| (step.record_id, step.handler, step.attempt))
            .collect();
        runs.push(order);
    }
    // For each of two handlers: `a` has 3 events with 1 attempt, `b` 3 events with 4, `c` 1 attempt.
    assert_eq!(runs[0].len(), 2 * (3 + 3 * 4 + 1));
    assert_eq!(runs[0], runs[1]);
    // All attempts of record 2 come before record 4, although record 4 waits for no other.
    assert_eq!(
        runs[0][2..6].iter().map(|step| step.2).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
}

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.paid", key = key)]
struct Paid {
    key: String,
}

/// The outbox, which exists only after its handlers.
type LateOutbox = Arc<OnceLock<Outbox<Sqlite>>>;

#[outbox_handler(id = "pay")]
async fn pay(
    event: Placed,
    State(pool): State<SqlitePool>,
    State(outbox): State<LateOutbox>,
) -> Result<(), HandlerError> {
    // The handler uses two connections at once, one of them with an open transaction.
    let mut tx = pool.begin().await?;
    sqlx::query("insert into payment values (?1)")
        .bind(event.n)
        .execute(&mut *tx)
        .await?;
    let seen: i64 = sqlx::query_scalar("select count(*) from payment")
        .fetch_one(&pool)
        .await?;
    assert_eq!(seen, i64::from(event.n) - 1);
    let paid = Paid { key: event.key };
    let publisher = outbox.get().ok_or("no outbox")?;
    publisher.publish(&mut tx, &paid).await?;
    tx.commit().await?;
    Ok(())
}

#[outbox_handler(id = "thank")]
async fn thank(event: Paid, State(seen): State<Seen>) {
    seen.add(event.key);
}

#[tokio::test]
async fn a_handler_uses_the_pool_and_publishes_while_the_kit_runs_it() {
    let (seen, outbox) = (Seen::default(), LateOutbox::default());
    let kit = Kit::new(|builder| {
        let pool = builder.pool().clone();
        builder
            .handler::<pay>()
            .handler::<thank>()
            .state(pool)
            .state(seen.clone())
            .state(Arc::clone(&outbox))
    })
    .await
    .expect("a kit");
    assert!(outbox.set(kit.outbox().clone()).is_ok());
    sqlx::query("create table payment (n integer)")
        .execute(kit.pool())
        .await
        .expect("a table");
    publish(&kit, "a", 1).await;
    publish(&kit, "a", 2).await;
    let handlers: Vec<String> = run(&kit)
        .await
        .into_iter()
        .map(|step| step.handler)
        .collect();
    assert_eq!(handlers, ["pay", "pay", "thank", "thank"]);
    assert_eq!(seen.all(), ["a", "a"]);
}

#[outbox_handler(id = "one-at-a-time", concurrency = 1)]
async fn one_at_a_time(_event: Placed) {}

#[tokio::test]
async fn the_concurrency_of_a_handler_does_not_change_the_order() {
    let kit = Kit::new(|builder| {
        builder
            .handler::<charge>()
            .handler::<one_at_a_time>()
            .state(Script::succeeds())
    })
    .await
    .expect("a kit");
    let mut tx = kit.begin().await.expect("a transaction");
    let events: Vec<Placed> = (0..500).map(|n| placed(&n.to_string(), n)).collect();
    let sent = kit.outbox().publish_all(&mut tx, &events).await;
    sent.expect("records");
    tx.commit().await.expect("a commit");
    let order: Vec<i64> = run(&kit).await.iter().map(|step| step.record_id).collect();
    assert!(order.is_sorted() && order.len() == 1000, "{order:?}");
}
