//! Records that wait behind a failed record of their lane.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use outbox::operations::{Change, DeliveryStatus, Status};
use outbox::{HandlerError, Metadata, Registry, State, outbox_handler};
use outbox_tests::on_each_database;

use crate::scene::{Scene, Step, config, count_up, eventually, publish, quick};

#[outbox_handler(id = "careless", on_permanent_failure = skip)]
async fn careless(
    event: Step,
    meta: &Metadata,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    scene.play("careless", &event, meta)
}

/// Fails until `repaired` is set.
fn fails_until(repaired: &Arc<AtomicBool>) -> Result<(), HandlerError> {
    if repaired.load(Ordering::Acquire) {
        Ok(())
    } else {
        Err("broken".into())
    }
}

const FAILED: &str = "select count(*) from outbox_delivery where status = 'failed'";
const WAITING: &str = "select count(*) from outbox_delivery where status = 'waiting'";

on_each_database! {
    async fn a_thousand_records_wait_behind_a_failed_one_and_follow_its_replay(db) {
        let repaired = Arc::new(AtomicBool::new(false));
        let is_repaired = Arc::clone(&repaired);
        let scene = Scene::with(move |event, _| match event.n {
            0 => fails_until(&is_repaired),
            _ => Ok(()),
        });
        let outbox = scene.outbox(&db.pool).retry_policy(quick(0)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", 0..500).await;
        publish(&outbox, &db.pool, "a", 500..=1000).await;
        eventually("a failure", async || database::number(&db.pool, FAILED).await == 1).await;
        eventually("a thousand waiting deliveries", async || database::number(&db.pool, WAITING).await == 1000).await;
        assert_eq!(scene.seen(), []);

        repaired.store(true, Ordering::Release);
        let (publishing, pool) = (outbox.clone(), db.pool.clone());
        let writer = tokio::spawn(async move {
            for n in (1001..1301).step_by(3) {
                publish(&publishing, &pool, "a", n..n + 3).await;
            }
        });
        database::replay(&db.pool).await;
        outbox.wake();
        writer.await.unwrap();
        scene.seen_at_least(1301).await;
        dispatcher.shutdown().await.unwrap();
        let all: Vec<u32> = (0..1301).collect();
        assert_eq!(scene.steps("first", "a"), all);
        assert_eq!(scene.attempts("first", "a", 0), [1, 2]);
                let open = "select count(*) from outbox_record where status <> 'completed'";
                assert_eq!(database::number(&db.pool, open).await, 0);
    }

    async fn a_lane_continues_after_its_failed_record_is_replayed_or_discarded(db) {
        let repaired = Arc::new(AtomicBool::new(false));
        let is_repaired = Arc::clone(&repaired);
        let scene = Scene::with(move |event, _| match event.n {
            0 | 3 => fails_until(&is_repaired),
            _ => Ok(()),
        });
        let outbox = scene.outbox(&db.pool).retry_policy(quick(0)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", 0..6).await;
        eventually("a failure", async || database::number(&db.pool, FAILED).await == 1).await;
        let operations = outbox.operations();
        let lanes = operations.blocked_lanes(10).await.unwrap();
        let [lane] = &*lanes else { panic!("{lanes:?}") };
        assert_eq!((&*lane.key, &*lane.handler, lane.waiting), ("a", "first", 5));
        let failed = lane.record_id;
        // After the discard the lane continues until its next failure.
        assert_eq!(operations.discard(failed, "first").await.unwrap(), Change::Applied);
        eventually("the next failure", async || database::number(&db.pool, FAILED).await == 1).await;
        assert_eq!(scene.steps("first", "a"), [1, 2]);
        let conflict = Change::Conflict(Status::Delivery(DeliveryStatus::Discarded));
        assert_eq!(operations.discard(failed, "first").await.unwrap(), conflict);
        assert_eq!(operations.replay(failed, "first").await.unwrap(), conflict);
        assert_eq!(operations.replay(i64::MAX, "first").await.unwrap(), Change::NotFound);

        repaired.store(true, Ordering::Release);
        let failed = operations.blocked_lanes(10).await.unwrap()[0].record_id;
        assert_eq!(operations.replay(failed, "first").await.unwrap(), Change::Applied);
        scene.seen_at_least(5).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("first", "a"), [1, 2, 3, 4, 5]);
        let done = Change::Conflict(Status::Delivery(DeliveryStatus::Completed));
        assert_eq!(operations.replay(failed, "first").await.unwrap(), done);
    }

    async fn a_lane_with_skip_continues_after_a_permanent_failure(db) {
        let scene = Scene::with(|event, _| match event.n {
            2 => Err("never".into()),
            _ => Ok(()),
        });
        let registry = Registry::builder().handler::<careless>();
        let outbox = scene.outbox_of(&db.pool, registry).retry_policy(quick(1)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", 1..=5).await;
        scene.seen_at_least(4).await;
        publish(&outbox, &db.pool, "a", 6..=6).await;
        scene.seen_at_least(5).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("careless", "a"), [1, 3, 4, 5, 6]);
        assert_eq!(scene.attempts("careless", "a", 2), [1, 2]);
        let tried: Vec<u32> = scene.tried().iter().map(|tried| tried.n).collect();
        assert_eq!(tried, [1, 2, 2, 3, 4, 5, 6], "the lane waits through the retries");
        assert_eq!(database::number(&db.pool, FAILED).await, 1);
    }

    async fn without_stop_on_first_failure_only_the_failed_record_waits(db) {
        let repaired = Arc::new(AtomicBool::new(false));
        let is_repaired = Arc::clone(&repaired);
        let scene = Scene::with(move |event, _| match event.n {
            1 => fails_until(&is_repaired),
            _ => Ok(()),
        });
        let mut config = config();
        config.processing.stop_on_first_failure = false;
        let outbox = scene.outbox(&db.pool).config(config).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", 1..=4).await;
        scene.seen_at_least(3).await;
        publish(&outbox, &db.pool, "a", 5..=6).await;
        scene.seen_at_least(5).await;
        repaired.store(true, Ordering::Release);
        scene.seen_at_least(6).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("first", "a"), [2, 3, 4, 5, 6, 1]);
        let attempts = scene.attempts("first", "a", 1);
        assert!(attempts.len() > 1 && count_up(&attempts), "{attempts:?}");
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_record where status = 'completed'").await, 6);
    }

    async fn waiting_lanes_continue_in_order_after_a_restart(db) {
        let repaired = Arc::new(AtomicBool::new(false));
        let is_repaired = Arc::clone(&repaired);
        let scene = Scene::with(move |event, _| match (&*event.key, event.n) {
            ("failed", 2) => fails_until(&is_repaired).map_err(|error| HandlerError::permanent(error.to_string())),
            ("retrying", 2) => fails_until(&is_repaired),
            _ => Ok(()),
        });
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        for key in ["failed", "retrying", "fine"] {
            publish(&outbox, &db.pool, key, 1..=40).await;
        }
        eventually("a failure", async || database::number(&db.pool, FAILED).await == 1).await;
        eventually("some retries", async || scene.attempts("first", "retrying", 2).len() > 3).await;
        dispatcher.shutdown().await.unwrap();
        let tries = scene.attempts("first", "retrying", 2).len();
        for key in ["failed", "retrying", "fine"] {
            publish(&outbox, &db.pool, key, 41..=50).await;
        }
        drop(outbox);

        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        eventually("more retries", async || scene.attempts("first", "retrying", 2).len() > tries + 2).await;
        repaired.store(true, Ordering::Release);
        database::replay(&db.pool).await;
        outbox.wake();
        for key in ["failed", "retrying", "fine"] {
            publish(&outbox, &db.pool, key, 51..=60).await;
        }
        scene.seen_at_least(180).await;
        dispatcher.shutdown().await.unwrap();
        let all: Vec<u32> = (1..=60).collect();
        for key in ["failed", "retrying", "fine"] {
            assert_eq!(scene.steps("first", key), all, "{key}");
        }
        let attempts = scene.attempts("first", "retrying", 2);
        assert!(count_up(&attempts), "{attempts:?}");
        assert_eq!(scene.attempts("first", "failed", 2), [1, 2]);
        assert!(scene.tried().iter().all(|tried| tried.n == 2 || tried.attempt == 1));
    }
}
