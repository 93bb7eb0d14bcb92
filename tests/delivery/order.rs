//! Order per key.

use std::collections::HashSet;

use outbox_tests::on_each_database;

use crate::scene::{Scene, step};

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

    async fn a_lane_waits_behind_its_failing_record_and_others_do_not(db) {
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

    async fn ten_thousand_records_of_a_hundred_keys_under_concurrent_writers(db) {
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
}
