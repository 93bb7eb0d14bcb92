//! Paused handlers.

use std::time::Duration;

use outbox::Registry;
use outbox_tests::on_each_database;

use crate::scene::{Scene, config, eventually, first, publish, second};

on_each_database! {
    async fn records_of_a_paused_handler_wait_without_using_up_attempts(db) {
        let scene = Scene::new();
        let registry = || Registry::builder().handler::<first>().handler::<second>();
        let outbox = scene.outbox_of(&db.pool, registry()).build().await.unwrap();
        database::pause(&db.pool, "first").await;
        let dispatcher = outbox.start().await.unwrap();
        for key in ["a", "b"] {
            publish(&outbox, &db.pool, key, 1..=5).await;
        }
        scene.seen_at_least(10).await;
        let waiting = "select count(*) from outbox_delivery where status = 'waiting' and handler = 'first' and attempt = 1";
        eventually("ten waiting deliveries", async || database::number(&db.pool, waiting).await == 10).await;
        for key in ["a", "b"] {
            publish(&outbox, &db.pool, key, 6..=8).await;
        }
        scene.seen_at_least(16).await;
        dispatcher.shutdown().await.unwrap();
        assert!(scene.tried().iter().all(|tried| tried.handler == "second"));
        publish(&outbox, &db.pool, "a", [9]).await;

        database::resume(&db.pool, "first").await;
        let outbox = scene.outbox_of(&db.pool, registry()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(16 + 16 + 2).await;
        dispatcher.shutdown().await.unwrap();
        for handler in ["first", "second"] {
            assert_eq!(scene.steps(handler, "a"), [1, 2, 3, 4, 5, 6, 7, 8, 9], "{handler}");
            assert_eq!(scene.steps(handler, "b"), [1, 2, 3, 4, 5, 6, 7, 8], "{handler}");
        }
        assert!(scene.tried().iter().all(|tried| tried.attempt == 1));
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_failure").await, 0);
    }

    async fn a_running_dispatcher_pauses_and_resumes_a_handler(db) {
        let scene = Scene::new();
        // Leases are short, because each claim reads which handlers are paused.
        let mut config = config();
        config.locking.lease = Some(Duration::from_millis(600));
        let outbox = scene.outbox(&db.pool).config(config).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1]).await;
        scene.seen_at_least(1).await;
        database::pause(&db.pool, "first").await;
        // Until the dispatcher reads the pause, it may still run the handler.
        let waiting = "select count(*) from outbox_delivery where status = 'waiting'";
        let mut n = 1;
        while database::number(&db.pool, waiting).await == 0 {
            n += 1;
            assert!(n < 1000, "the handler was not paused");
            publish(&outbox, &db.pool, "a", [n]).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let seen = scene.seen().len();
        publish(&outbox, &db.pool, "a", n + 1..=n + 50).await;
        publish(&outbox, &db.pool, "b", 1..=5).await;
        eventually("55 waiting deliveries", async || database::number(&db.pool, waiting).await >= 55).await;
        assert_eq!(scene.seen().len(), seen);

        database::resume(&db.pool, "first").await;
        publish(&outbox, &db.pool, "a", n + 51..=n + 60).await;
        scene.seen_at_least(n as usize + 65).await;
        dispatcher.shutdown().await.unwrap();
        let all: Vec<u32> = (1..=n + 60).collect();
        assert_eq!(scene.steps("first", "a"), all);
        assert_eq!(scene.steps("first", "b"), [1, 2, 3, 4, 5]);
        assert!(scene.tried().iter().all(|tried| tried.attempt == 1));
    }
}
