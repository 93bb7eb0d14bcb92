//! A process disappears without a shutdown. Another process continues its lanes in order, and
//! counts the attempts that the first one made.

use std::time::{Duration, Instant};

use outbox::{Config, HandlerError, Metadata, Registry};
use outbox_tests::on_each_database;

use crate::{
    fleet::another_pool,
    scene::{Scene, Step, config, count_up, eventually, first, publish, second},
};

/// How invocations of the first process end.
fn fails(event: &Step, meta: &Metadata) -> Result<(), HandlerError> {
    match (&*event.key, event.n) {
        ("failed", 2) => Err(HandlerError::permanent("never")),
        ("retried", 1) => Err("not yet".into()),
        ("half", 1) if meta.handler_id() == "second" => Err("not yet".into()),
        _ => Ok(()),
    }
}

/// SQLite does not report that a session has ended. There the lease has to expire first.
fn short_leases(one_writer: bool) -> Config {
    let mut config = config();
    if one_writer {
        config.locking.lease = Some(Duration::from_secs(2));
    }
    config
}

on_each_database! {
    async fn a_process_continues_the_lanes_of_a_dead_one(db) {
        let registry = || Registry::builder().handler::<first>().handler::<second>();
        let (dies, successor) = (Scene::with(fails), Scene::with(|event, _| match &*event.key {
            // The delivery stays failed until it is replayed.
            "failed" if event.n == 2 => Err(HandlerError::permanent("never")),
            _ => Ok(()),
        }));
        let pool = another_pool(&db.pool).await;
        let settings = short_leases(database::ONE_WRITER);
        let outbox = dies.outbox_of(&pool, registry()).config(settings.clone()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        for key in ["failed", "retried", "half"] {
            publish(&outbox, &pool, key, 1..=4).await;
        }
                // One lane is blocked and has parked deliveries, one is retrying, and in one only one of
                // two handlers is done.
                eventually("failures", async || {
            let failed = "select count(*) from outbox_delivery where status = 'failed'";
            let waiting = "select count(*) from outbox_delivery where status = 'waiting'";
            database::number(&db.pool, failed).await == 2
                && database::number(&db.pool, waiting).await >= 12
                && dies.attempts("first", "retried", 1).len() > 3
                && dies.attempts("second", "half", 1).len() > 3
        }).await;
        assert_eq!(dies.steps("first", "half"), [1, 2, 3, 4]);
        // Without a shutdown.
        drop(dispatcher);
        pool.close().await;
        let died_at = Instant::now();

        let pool = another_pool(&db.pool).await;
        let outbox = successor.outbox_of(&pool, registry()).config(settings).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        eventually("the successor to complete the open deliveries", async || {
            successor.steps("first", "retried") == [1, 2, 3, 4]
                && successor.steps("second", "retried") == [1, 2, 3, 4]
                && successor.steps("second", "half") == [1, 2, 3, 4]
        }).await;
        println!("the lanes were complete {:?} after the process died", died_at.elapsed());
        assert!(died_at.elapsed() < Duration::from_secs(20), "{:?}", died_at.elapsed());
        // The successor repeats no finished record, and at most the last attempt of a failed one.
        assert!(successor.steps("first", "half").is_empty());
        assert!(successor.steps("first", "failed").is_empty());
        for (handler, key) in [("first", "retried"), ("second", "half")] {
            let (before, after) = (dies.attempts(handler, key, 1), successor.attempts(handler, key, 1));
            assert!(count_up(&before), "{before:?}");
            let last = *before.last().unwrap();
            assert!(after == [last] || after == [last + 1], "{before:?}, then {after:?}");
        }
        // The blocked lane is still blocked, and its records are in order.
        publish(&outbox, &pool, "failed", [5]).await;
        database::replay(&db.pool).await;
        outbox.wake();
        eventually("the second attempt of the failed record", async || successor.attempts("first", "failed", 2).len() == 1).await;
        assert!(successor.steps("first", "failed").is_empty());
        dispatcher.shutdown().await.unwrap();
        let parked = format!("select {} from outbox_delivery where status = 'waiting'", database::KEY);
        assert_eq!(database::texts(&db.pool, &parked).await, ["failed"; 6]);
    }
}
