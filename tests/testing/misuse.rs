//! Wrong uses of the kit are reported soon and clearly.

use std::time::{Duration, Instant};

use outbox::{
    Error, HandlerError, outbox_handler,
    testing::{Kit, KitError},
};

use crate::shop::{Placed, Script, kit, placed, publish, run};

#[tokio::test]
async fn a_run_during_an_open_transaction_is_an_error_and_does_not_hang() {
    let kit = kit(Script::succeeds()).await;
    let mut tx = kit.begin().await.expect("a transaction");
    let sent = kit.outbox().publish(&mut tx, &placed("a", 1)).await;
    sent.expect("a record");
    let started = Instant::now();
    let error = kit.run_until_idle().await.expect_err("an open transaction");
    assert!(started.elapsed() < Duration::from_secs(10));
    let open = matches!(&error, Error::Testing(KitError::TransactionOpen { .. }));
    assert!(open, "{error:?}");
    assert!(error.to_string().contains("commit it"), "{error}");
    tx.commit().await.expect("a commit");
    assert_eq!(run(&kit).await.len(), 1);
}

#[tokio::test]
async fn an_open_transaction_that_only_reads_does_not_disturb_a_run() {
    let kit = kit(Script::succeeds()).await;
    let mut tx = kit.begin().await.expect("a transaction");
    assert_eq!(kit.published::<Placed>(&mut tx).await.expect("events"), []);
    publish(&kit, "a", 1).await;
    assert_eq!(run(&kit).await.len(), 1);
    drop(tx);
}

#[tokio::test]
async fn a_run_that_does_not_end_is_an_error() {
    let script = Script::new(|_, _| Err(HandlerError::retry_after(Duration::ZERO, "again")));
    let forever = outbox::Retry::builder().max_retries(u32::MAX);
    let policy = forever.build().expect("a policy");
    let kit = crate::shop::kit_with(policy, script)
        .await
        .max_invocations(20);
    publish(&kit, "a", 1).await;
    for attempt in 1..=25 {
        let step = kit.step().await.expect("a step").expect("a step");
        assert_eq!(step.attempt, attempt);
    }
    let error = kit
        .run_until_idle()
        .await
        .expect_err("a run without an end");
    assert!(error.to_string().contains("20 invocations"), "{error}");
    assert!(error.to_string().contains("charge"), "{error}");
}

#[tokio::test]
async fn a_step_while_a_dispatcher_runs_is_an_error() {
    let kit = kit(Script::succeeds()).await;
    let dispatcher = kit.outbox().start().await.expect("a dispatcher");
    let error = kit.step().await.expect_err("a dispatcher");
    assert!(matches!(error, Error::Testing(KitError::DispatcherRuns)));
    dispatcher.shutdown().await.expect("a shutdown");
    publish(&kit, "a", 1).await;
    assert_eq!(run(&kit).await.len(), 1);
}

#[outbox_handler(id = "panics")]
async fn panics(event: Placed) {
    panic!("number {}", event.n);
}

#[tokio::test]
async fn a_panic_of_a_handler_does_not_fail_the_test() {
    let kit = Kit::new(|builder| builder.handler::<panics>())
        .await
        .expect("a kit");
    publish(&kit, "a", 7).await;
    let error = run(&kit).await.remove(0).error.expect("an error");
    assert!(error.contains("number 7"), "{error}");
}

#[tokio::test]
async fn dropping_the_kit_removes_its_files() {
    let kit = kit(Script::succeeds()).await;
    publish(&kit, "a", 1).await;
    let debug = format!("{kit:?}");
    let folder = debug.split('"').nth(1).expect("a path").to_owned();
    assert!(std::path::Path::new(&folder).join("outbox.sqlite").exists());
    drop(kit);
    assert!(!std::path::Path::new(&folder).exists());
}
