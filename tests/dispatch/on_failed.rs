//! When the program's `on_failed` is called, on a running dispatcher.

use std::sync::Arc;

use outbox::{Outbox, Registry, registry::FailedDelivery};
use outbox_tests::{database, on_each_database};
use tokio::sync::Semaphore;

use crate::scene::{
    COMPLETED, FAILED, Notes, OPEN, Thief, builder, ending, eventually, plain, publish, thief,
    to_catch,
};

on_each_database! {
    async fn on_failed_gets_each_permanent_failure_and_nothing_else(db) {
        let (notes, told) = (Notes::default(), Notes::default());
        let outbox = builder(&db.pool, &notes, Thief::honest()).on_failed({
            let told = told.clone();
            move |failed: FailedDelivery| {
                let told = told.clone();
                async move {
                    let payload = failed.event().payload().contains("how");
                    told.add(format!(
                        "{} {} {} attempt {}, {payload}: {:#} ({})",
                        failed.handler(), failed.metadata().event(), failed.metadata().key(),
                        failed.metadata().attempt(), failed.error(), failed.because(),
                    ));
                }
            }
        }).build().await.unwrap();
        publish(&outbox, &[ending("succeeds"), ending("exhausted"), ending("permanent"), ending("unreadable")]).await;
        publish(&outbox, &[to_catch("rescued"), to_catch("lost"), to_catch("unreadable"), to_catch("to be invalid")]).await;
        database::execute(&db.pool, "update outbox_record set payload = '{}' where payload like '%unreadable%'").await;
        let invalid = "update outbox_record set payload = replace(payload, 'to be invalid', 'invalid')";
        database::execute(&db.pool, invalid).await;
        let dispatcher = outbox.start().await.unwrap();
        eventually("six failures", async || database::number(&db.pool, FAILED).await == 6).await;
        eventually("everything else", async || {
            database::number(&db.pool, OPEN).await == 0 && database::number(&db.pool, COMPLETED).await == 2
        }).await;
        dispatcher.shutdown().await.unwrap();
        let told = told.sorted();
        assert_eq!(told.len(), 6, "{told:#?}");
        assert!(told[0].starts_with("caught caught lost attempt 2, true: the handler failed, and then its fallback (no rescue): no (all retries"), "{told:#?}");
        assert!(told[1].starts_with("caught caught to be invalid attempt 1, true: event `caught` is not valid"), "{told:#?}");
        assert!(told[2].starts_with("caught caught unreadable attempt 1, false: the payload"), "{told:#?}");
        assert!(told[2].ends_with("(the payload is not a valid event)"), "{told:#?}");
        assert_eq!(told[3], "plain ending exhausted attempt 2, true: exhausted (all retries are used up)");
        assert_eq!(told[4], "plain ending permanent attempt 1, true: never (the handler returned a permanent error)");
        assert!(told[5].starts_with("plain ending unreadable attempt 1, false: the payload"), "{told:#?}");
        // A fallback takes the event, so it never runs for a payload that is not a valid event.
        let ran = notes.sorted();
        assert_eq!(ran, [
            "handled", "lost attempt 1", "lost attempt 2", "lost fallback", "rescued attempt 1", "rescued attempt 2",
            "rescued fallback",
        ]);
    }

    async fn the_failure_is_written_after_on_failed_and_other_keys_do_not_wait(db) {
        let (notes, gate) = (Notes::default(), Arc::new(Semaphore::new(0)));
        let outbox = builder(&db.pool, &notes, Thief::honest()).on_failed({
            let (notes, gate) = (notes.clone(), Arc::clone(&gate));
            move |_| {
                let (notes, gate) = (notes.clone(), Arc::clone(&gate));
                async move {
                    notes.add("told");
                    let _permit = gate.acquire().await.unwrap();
                }
            }
        }).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &[ending("permanent")]).await;
        eventually("the call", async || notes.all() == ["told"]).await;
        publish(&outbox, &[ending("succeeds")]).await;
        eventually("another key", async || notes.all() == ["told", "handled"]).await;
        eventually("its completion", async || database::number(&db.pool, COMPLETED).await == 1).await;
        assert_eq!(database::number(&db.pool, FAILED).await, 0);
        gate.add_permits(1);
        eventually("the failure", async || database::number(&db.pool, FAILED).await == 1).await;
        dispatcher.shutdown().await.unwrap();
    }

    async fn a_panic_of_on_failed_changes_nothing(db) {
        let notes = Notes::default();
        let outbox = builder(&db.pool, &notes, Thief::honest())
            .on_failed(|_| async { panic!("in the hook") })
            .build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &[ending("permanent"), ending("exhausted")]).await;
        eventually("both failures", async || database::number(&db.pool, FAILED).await == 2).await;
        publish(&outbox, &[ending("succeeds")]).await;
        eventually("another key", async || notes.all() == ["handled"]).await;
        dispatcher.shutdown().await.unwrap();
    }

    async fn on_failed_is_called_again_if_the_failure_was_not_written(db) {
        let notes = Notes::default();
        let thief = thief!(db, database);
        let outbox = builder(&db.pool, &notes, Thief::honest()).on_failed({
            let notes = notes.clone();
            move |failed: FailedDelivery| {
                let (notes, thief) = (notes.clone(), thief.clone());
                async move {
                    notes.add(format!("told {}", failed.metadata().attempt()));
                    thief.take_leases_once().await;
                }
            }
        }).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &[ending("permanent")]).await;
        eventually("the failure", async || database::number(&db.pool, FAILED).await == 1).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(notes.all(), ["told 1", "told 1"]);
    }
}

#[tokio::test]
async fn a_second_on_failed_is_an_error_that_names_both_calls() {
    let db = database::sqlite::fresh().await;
    let notes = Notes::default();
    let twice = builder(&db.pool, &notes, Thief::honest())
        .on_failed(|_| async {})
        .on_failed(|_| async {});
    let text = format!(
        "{:#}",
        anyhow::Error::from(twice.build().await.unwrap_err())
    );
    assert!(text.contains("`.on_failed(..)` is called twice"), "{text}");
    assert_eq!(text.matches("on_failed.rs:").count(), 2, "{text}");
    let registry = Registry::builder()
        .handler::<plain>()
        .on_failed(|_| async {});
    let both = Outbox::builder(db.pool.clone())
        .on_failed(|_| async {})
        .registry(registry.state(notes));
    let text = format!("{:#}", anyhow::Error::from(both.build().await.unwrap_err()));
    assert!(text.contains("`.on_failed(..)` is called twice"), "{text}");
}
