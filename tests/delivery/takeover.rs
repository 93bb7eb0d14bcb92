//! A process is gone from one moment to the next: what it had begun is carried on by another, in
//! order, and with the attempts that were made.

use std::time::{Duration, Instant};

use outbox::{Config, HandlerError, Metadata, Registry};
use outbox_tests::on_each_database;

use crate::{
    fleet::another_pool,
    scene::{Scene, Step, config, count_up, eventually, first, publish, second},
};

/// What the first process comes to, before it is gone.
fn fails(event: &Step, meta: &Metadata) -> Result<(), HandlerError> {
    match (&*event.key, event.n) {
        ("failed", 2) => Err(HandlerError::permanent("never")),
        ("retried", 1) => Err("not yet".into()),
        ("half", 1) if meta.handler_id() == "second" => Err("not yet".into()),
        _ => Ok(()),
    }
}

/// Where the database does not tell when a session ends, the lease has to run out.
fn short_leases(one_writer: bool) -> Config {
    let mut config = config();
    if one_writer {
        config.locking.lease = Some(Duration::from_secs(2));
    }
    config
}

on_each_database! {
    async fn lanes_go_on_where_a_dead_process_left_them(db) {
        let registry = || Registry::builder().handler::<first>().handler::<second>();
        let (dies, carries_on) = (Scene::with(fails), Scene::with(|event, _| match &*event.key {
            // It stays failed until it is replayed.
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
        // Blocked with others parked behind it; retrying; half done.
        eventually("failures", async || {
            let failed = "select count(*) from outbox_delivery where status = 'failed'";
            let waiting = "select count(*) from outbox_delivery where status = 'waiting'";
            database::number(&db.pool, failed).await == 2
                && database::number(&db.pool, waiting).await >= 12
                && dies.attempts("first", "retried", 1).len() > 3
                && dies.attempts("second", "half", 1).len() > 3
        }).await;
        assert_eq!(dies.steps("first", "half"), [1, 2, 3, 4]);
        // Not stopped: gone.
        drop(dispatcher);
        pool.close().await;
        let gone = Instant::now();

        let pool = another_pool(&db.pool).await;
        let outbox = carries_on.outbox_of(&pool, registry()).config(settings).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        eventually("the retried key to go on", async || {
            carries_on.steps("first", "retried") == [1, 2, 3, 4]
                && carries_on.steps("second", "retried") == [1, 2, 3, 4]
                && carries_on.steps("second", "half") == [1, 2, 3, 4]
        }).await;
        println!("carried on {:?} after it was gone", gone.elapsed());
        assert!(gone.elapsed() < Duration::from_secs(20), "{:?}", gone.elapsed());
        // What it had finished is not done again; of what it tried, at most the last attempt is.
        assert!(carries_on.steps("first", "half").is_empty());
        assert!(carries_on.steps("first", "failed").is_empty());
        for (handler, key) in [("first", "retried"), ("second", "half")] {
            let (before, after) = (dies.attempts(handler, key, 1), carries_on.attempts(handler, key, 1));
            assert!(count_up(&before), "{before:?}");
            let last = *before.last().unwrap();
            assert!(after == [last] || after == [last + 1], "{before:?}, then {after:?}");
        }
        // The blocked one is still blocked, in order.
        publish(&outbox, &pool, "failed", [5]).await;
        database::replay(&db.pool).await;
        outbox.wake();
        eventually("the second try of what failed", async || carries_on.attempts("first", "failed", 2).len() == 1).await;
        assert!(carries_on.steps("first", "failed").is_empty());
        dispatcher.shutdown().await.unwrap();
        let parked = format!("select {} from outbox_delivery where status = 'waiting'", database::KEY);
        assert_eq!(database::texts(&db.pool, &parked).await, ["failed"; 6]);
    }
}
