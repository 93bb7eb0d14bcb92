//! Retries that are made from memory: nothing is written of them, and nothing is lost with them.

use std::time::Duration;

use outbox::{Config, Database, HandlerError, Metadata, Outbox};
use outbox_tests::on_each_database;
use sqlx::Pool;

use crate::scene::{Scene, Step, config, eventually, publish};

/// Retries of up to so long are brief; those of the scene are due after 5 ms.
fn brief(longest: Duration) -> Config {
    let mut config = config();
    config.processing.retry_in_memory = longest;
    config
}

async fn outbox<Db: Database>(scene: &Scene, pool: &Pool<Db>, longest: Duration) -> Outbox<Db> {
    let outbox = scene.outbox(pool).config(brief(longest));
    outbox.build().await.expect("an outbox")
}

fn third_time(_: &Step, meta: &Metadata) -> Result<(), HandlerError> {
    match meta.attempt() {
        3 => Ok(()),
        _ => Err(HandlerError::from("not yet")),
    }
}

const COMPLETED: &str = "select count(*) from outbox_record where status = 'completed'";
const DELIVERIES: &str = "select count(*) from outbox_delivery";
const FAILURES: &str = "select count(*) from outbox_failure";
const SECOND: &str = "select count(*) from outbox_delivery where status in ('waiting', 'scheduled') and attempt = 2 and error = 'not yet'";

on_each_database! {
    async fn keys_keep_their_order_and_nothing_is_written_but_the_end(db) {
        let scene = Scene::with(third_time);
        let outbox = outbox(&scene, &db.pool, Duration::from_millis(100)).await;
        for key in ["a", "b", "c"] {
            publish(&outbox, &db.pool, key, 0..10).await;
        }
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(30).await;
        dispatcher.shutdown().await.unwrap();
        for key in ["a", "b", "c"] {
            assert_eq!(scene.steps("first", key), Vec::from_iter(0..10));
            assert_eq!(scene.attempts("first", key, 7), [1, 2, 3]);
        }
        assert_eq!(database::number(&db.pool, COMPLETED).await, 30);
        assert_eq!(database::number(&db.pool, DELIVERIES).await, 0);
        assert_eq!(database::number(&db.pool, FAILURES).await, 0);
    }

    async fn one_that_goes_on_failing_is_written_with_all_its_failures(db) {
        let scene = Scene::with(|_, meta| match meta.attempt() {
            8 => Ok(()),
            _ => Err(HandlerError::from("not yet")),
        });
        let outbox = outbox(&scene, &db.pool, Duration::from_millis(100)).await;
        publish(&outbox, &db.pool, "a", 0..2).await;
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(2).await;
        dispatcher.shutdown().await.unwrap();
        for step in 0..2 {
            assert_eq!(scene.attempts("first", "a", step), Vec::from_iter(1..=8));
        }
        assert_eq!(database::number(&db.pool, FAILURES).await, 14);
        assert_eq!(database::number(&db.pool, COMPLETED).await, 2);
    }

    async fn a_stop_writes_what_only_memory_knows(db) {
        let scene = Scene::with(third_time);
        let builder = scene.outbox(&db.pool).retry_policy(
            outbox::Retry::builder().fixed(Duration::from_secs(9)).build().unwrap(),
        );
        let outbox = builder.config(brief(Duration::from_secs(10))).build().await.unwrap();
        publish(&outbox, &db.pool, "a", 0..2).await;
        let dispatcher = outbox.start().await.unwrap();
        scene.tried_at_least(1).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("first", "a", 0), [1]);
        assert_eq!(database::number(&db.pool, SECOND).await, 1);
        assert_eq!(database::number(&db.pool, FAILURES).await, 1);
        // The next one goes on where this one stopped.
        let outbox = self::outbox(&scene, &db.pool, Duration::from_millis(100)).await;
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(2).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("first", "a", 0), [1, 2, 3]);
        assert_eq!(scene.steps("first", "a"), [0, 1]);
    }

    async fn what_was_not_written_is_tried_from_the_start_after_a_crash(db) {
        let scene = Scene::with(third_time);
        let builder = scene.outbox(&db.pool).retry_policy(
            outbox::Retry::builder().fixed(Duration::from_secs(9)).build().unwrap(),
        );
        let outbox = builder.config(brief(Duration::from_secs(10))).build().await.unwrap();
        publish(&outbox, &db.pool, "a", 0..2).await;
        let dispatcher = outbox.start().await.unwrap();
        scene.tried_at_least(1).await;
        drop(dispatcher);
        let outbox = self::outbox(&scene, &db.pool, Duration::from_millis(100)).await;
        let dispatcher = outbox.start().await.unwrap();
        eventually("both to be done", async || database::number(&db.pool, COMPLETED).await == 2).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("first", "a", 0), [1, 1, 2, 3]);
        assert_eq!(scene.steps("first", "a"), [0, 1]);
    }
}
