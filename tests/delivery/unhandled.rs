//! Events without a handler, and handlers with a new id.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use outbox::{HandlerError, Metadata, Registry, State, outbox_handler};
use outbox_tests::on_each_database;

use crate::{
    payload::{Note, Notes, notes},
    scene::{Scene, Step, eventually, first, publish, quick},
};

#[outbox_handler(id = "old-id")]
async fn old(event: Step, meta: &Metadata, State(scene): State<Scene>) -> Result<(), HandlerError> {
    scene.play("old", &event, meta)
}

#[outbox_handler(id = "new-id", aliases = ["old-id"])]
async fn new(event: Step, meta: &Metadata, State(scene): State<Scene>) -> Result<(), HandlerError> {
    scene.play("new", &event, meta)
}

const UNHANDLED: &str = "select count(*) from outbox_record where status = 'unhandled'";

on_each_database! {
    async fn a_record_without_a_handler_stays_until_a_handler_exists(db) {
        let scene = Scene::new();
        let received = Notes::default();
        let registry = Registry::builder().handler::<notes>().state(Arc::clone(&received));
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", 1..=3).await;
        let mut tx = db.pool.begin().await.unwrap();
        let note = Note { key: "a".to_owned(), text: "of the same key".to_owned() };
        outbox.publish(&mut tx, &note).await.unwrap();
        tx.commit().await.unwrap();
        publish(&outbox, &db.pool, "a", 4..=5).await;
        eventually("the note", async || received.lock().unwrap().len() == 1).await;
        eventually("five unhandled records", async || database::number(&db.pool, UNHANDLED).await == 5).await;
        dispatcher.shutdown().await.unwrap();
        let of_steps = "select count(*) from outbox_delivery d join outbox_record r on r.id = d.record_id where r.event = 'step'";
        assert_eq!(database::number(&db.pool, of_steps).await, 0);
        publish(&outbox, &db.pool, "a", 6..=8).await;

        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", 9..=10).await;
        scene.seen_at_least(10).await;
        dispatcher.shutdown().await.unwrap();
        let all: Vec<u32> = (1..=10).collect();
        assert_eq!(scene.steps("first", "a"), all);
        assert!(scene.tried().iter().all(|tried| tried.attempt == 1));
        assert_eq!(database::number(&db.pool, UNHANDLED).await, 0);
    }

    async fn a_new_handler_gets_more_than_one_page_of_unhandled_records(db) {
        let scene = Scene::new();
        let registry = Registry::builder().handler::<notes>().state(Notes::default());
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        for key in 0..6 {
            publish(&outbox, &db.pool, &key.to_string(), 0..1000).await;
        }
        eventually("6000 unhandled records", async || database::number(&db.pool, UNHANDLED).await == 6000).await;
        dispatcher.shutdown().await.unwrap();
        let registry = Registry::builder().handler::<first>();
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(6000).await;
        dispatcher.shutdown().await.unwrap();
        let all: Vec<u32> = (0..1000).collect();
        for key in 0..6 {
            assert_eq!(scene.steps("first", &key.to_string()), all);
        }
    }

    async fn a_handler_with_a_new_id_gets_the_deliveries_of_its_old_id(db) {
        let repaired = Arc::new(AtomicBool::new(false));
        let is_repaired = Arc::clone(&repaired);
        let scene = Scene::with(move |event, _| match (&*event.key, event.n) {
            ("failed" | "retrying", 1) if !is_repaired.load(Ordering::Acquire) => match &*event.key {
                "failed" => Err(HandlerError::permanent("broken")),
                _ => Err("broken".into()),
            },
            _ => Ok(()),
        });
        let registry = Registry::builder().handler::<old>();
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "failed", 1..=3).await;
        publish(&outbox, &db.pool, "retrying", 1..=3).await;
        let waiting = "select count(*) from outbox_delivery where status = 'waiting'";
        eventually("four waiting deliveries", async || database::number(&db.pool, waiting).await == 4).await;
        dispatcher.shutdown().await.unwrap();
        publish(&outbox, &db.pool, "failed", [4]).await;

        let registry = Registry::builder().handler::<new>();
        let outbox = scene.outbox_of(&db.pool, registry).retry_policy(quick(u32::MAX)).build().await.unwrap();
        repaired.store(true, Ordering::Release);
        let dispatcher = outbox.start().await.unwrap();
        database::replay(&db.pool).await;
        outbox.wake();
        publish(&outbox, &db.pool, "retrying", [4]).await;
        scene.seen_at_least(8).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("new", "failed"), [1, 2, 3, 4]);
        assert_eq!(scene.steps("new", "retrying"), [1, 2, 3, 4]);
        assert!(scene.steps("old", "retrying").is_empty());
        assert_eq!(scene.attempts("new", "failed", 1), [2]);
    }
}
