//! The order of records of one key.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use outbox::Registry;
use outbox_tests::on_each_database;

use crate::scene::{Random, Scene, count_up, first, publish, second, step};

/// Whether an attempt fails: 30 % of the first five attempts do, no later one does.
fn fails(handler: &str, key: &str, n: u32, attempt: u32) -> bool {
    let mut hasher = DefaultHasher::new();
    (handler, key, n, attempt).hash(&mut hasher);
    attempt <= 5 && Random::of(hasher.finish()).below(10) < 3
}

on_each_database! {
    async fn a_committed_event_is_delivered_and_a_rolled_back_one_is_not(db) {
        let scene = Scene::new();
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        outbox.publish(&mut tx, &step("rolled back", 1)).await.unwrap();
        tx.rollback().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        outbox.publish(&mut tx, &step("committed", 1)).await.unwrap();
        tx.commit().await.unwrap();
        scene.seen_at_least(1).await;
        dispatcher.shutdown().await.unwrap();
        let keys: Vec<String> = scene.seen().into_iter().map(|seen| seen.key).collect();
        assert_eq!(keys, ["committed"]);
    }

    async fn a_lane_waits_behind_its_failing_record_and_other_lanes_do_not(db) {
        let scene = Scene::with(|event, meta| match (&*event.key, event.n) {
            ("bad", 2) if meta.attempt() < 4 => Err("not yet".into()),
            _ => Ok(()),
        });
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        for n in 1..=5 {
            outbox.publish(&mut tx, &step("bad", n)).await.unwrap();
            outbox.publish(&mut tx, &step("good", n)).await.unwrap();
        }
        tx.commit().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(10).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("first", "bad"), [1, 2, 3, 4, 5]);
        assert_eq!(scene.steps("first", "good"), [1, 2, 3, 4, 5]);
        let attempts: Vec<u32> = scene.tried().iter()
            .filter(|tried| tried.key == "bad" && tried.n == 2)
            .map(|tried| tried.attempt)
            .collect();
        assert_eq!(attempts, [1, 2, 3, 4]);
        let last_good = scene.seen().iter().position(|seen| (&*seen.key, seen.n) == ("good", 5));
        let bad = scene.seen().iter().position(|seen| (&*seen.key, seen.n) == ("bad", 2));
        assert!(last_good < bad, "the good lane waited for the bad one");
    }

    async fn ten_thousand_records_of_concurrent_writers_arrive_in_order(db) {
        let scene = Scene::new();
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let writers: Vec<_> = (0..4).map(|writer| {
            let (outbox, pool) = (outbox.clone(), db.pool.clone());
            tokio::spawn(async move {
                for batch in 0..10 {
                    let steps: Vec<_> = (0..25)
                        .flat_map(|key| (0..10).map(move |n| step(format!("{writer}/{key}"), batch * 10 + n)))
                        .collect();
                    let mut tx = pool.begin().await.unwrap();
                    outbox.publish_all(&mut tx, &steps).await.unwrap();
                    tx.commit().await.unwrap();
                }
            })
        }).collect();
        for writer in writers {
            writer.await.unwrap();
        }
        scene.seen_at_least(10_000).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.seen().len(), 10_000);
        let keys: HashSet<String> = scene.seen().into_iter().map(|seen| seen.key).collect();
        assert_eq!(keys.len(), 100);
        let all: Vec<u32> = (0..100).collect();
        for key in keys {
            assert_eq!(scene.steps("first", &key), all, "{key}");
        }
    }

    async fn a_record_is_not_delivered_before_its_commit(db) {
        let scene = Scene::new();
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        outbox.publish(&mut tx, &step("a", 1)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(scene.tried(), []);
        tx.commit().await.unwrap();
        scene.seen_at_least(1).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("first", "a", 1), [1]);
    }

    async fn records_of_concurrent_writers_stay_in_order_through_retries(db) {
        let scene = Scene::with(|event, meta| {
                        if fails(meta.handler_id(), &event.key, event.n, meta.attempt()) {
                            return Err("by chance".into());
                        }
                        Ok(())
        });
        let registry = Registry::builder().handler::<first>().handler::<second>();
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let writers: Vec<_> = (0..4).map(|writer| {
            let (outbox, pool) = (outbox.clone(), db.pool.clone());
            tokio::spawn(async move {
                for batch in 0..6 {
                    for key in 0..5 {
                        let steps = batch * 5..batch * 5 + 5;
                        publish(&outbox, &pool, &format!("{writer}/{key}"), steps).await;
                    }
                }
            })
        }).collect();
        for writer in writers {
            writer.await.unwrap();
        }
        scene.seen_at_least(2 * 20 * 30).await;
        dispatcher.shutdown().await.unwrap();
        for handler in ["first", "second"] {
            for key in (0..4).flat_map(|writer| (0..5).map(move |key| format!("{writer}/{key}"))) {
                let tried: Vec<(u32, u32)> = scene.tried().iter()
                    .filter(|tried| tried.handler == handler && tried.key == key)
                    .map(|tried| (tried.n, tried.attempt))
                    .collect();
                let key = &*key;
                let attempts = |n| {
                    (1..).take_while(move |attempt| *attempt == 1 || fails(handler, key, n, attempt - 1))
                };
                let expected: Vec<(u32, u32)> = (0..30)
                    .flat_map(|n| attempts(n).map(move |attempt| (n, attempt)))
                    .collect();
                assert_eq!(tried, expected, "{handler} of {key}");
            }
        }
    }

    async fn a_lane_that_always_fails_delays_no_other_lane(db) {
        let scene = Scene::with(|event, meta| match (meta.handler_id(), &*event.key) {
            ("first", "bad") => Err("never".into()),
            _ => Ok(()),
        });
        let registry = Registry::builder().handler::<first>().handler::<second>();
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        for n in 1..=3 {
            publish(&outbox, &db.pool, "bad", [n]).await;
            publish(&outbox, &db.pool, "good", [n]).await;
        }
        scene.seen_at_least(9).await;
        // Only the failing record is still retried.
        let tried = scene.tried().len();
        scene.tried_at_least(tried + 3).await;
        dispatcher.shutdown().await.unwrap();
        for (handler, key) in [("first", "good"), ("second", "good"), ("second", "bad")] {
            assert_eq!(scene.steps(handler, key), [1, 2, 3], "{handler} of {key}");
        }
        assert!(scene.steps("first", "bad").is_empty());
        let attempts = scene.attempts("first", "bad", 1);
        assert!(count_up(&attempts), "{attempts:?}");
        assert!(scene.attempts("first", "bad", 2).is_empty());
    }
}
