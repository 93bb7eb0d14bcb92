//! A slow handler takes its own time only.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outbox::{
    Database, HandlerError, Metadata, Outbox, OutboxEvent, Registry, State, outbox_handler,
};
use outbox_tests::on_each_database;
use serde::{Deserialize, Serialize};
use sqlx::Pool;

use crate::scene::{Scene, first, publish, step};

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "chore", key = key)]
struct Chore {
    key: u32,
}

#[outbox_handler(id = "slow", concurrency = 1)]
async fn slow(
    _: Chore,
    meta: &Metadata,
    State(done): State<Arc<AtomicUsize>>,
) -> Result<(), HandlerError> {
    assert_eq!(meta.attempt(), 1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    done.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// As many chores, of so many keys.
async fn chores<Db: Database>(outbox: &Outbox<Db>, pool: &Pool<Db>, count: u32, keys: u32) {
    let mut tx = pool.begin().await.expect("a transaction");
    let chores: Vec<Chore> = (0..count).map(|n| Chore { key: n % keys }).collect();
    let written = outbox.publish_all(&mut tx, &chores).await;
    written.expect("chores are valid");
    tx.commit().await.expect("a commit");
}

on_each_database! {
    async fn a_slow_handler_of_many_keys_holds_up_no_other(db) {
        let (scene, done) = (Scene::new(), Arc::new(AtomicUsize::new(0)));
        let registry = Registry::builder().handler::<first>().handler::<slow>().state(Arc::clone(&done));
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        chores(&outbox, &db.pool, 6000, 3000).await;
        let dispatcher = outbox.start().await.unwrap();
        for key in 0..20 {
            publish(&outbox, &db.pool, &key.to_string(), 0..100).await;
        }
        scene.seen_at_least(2000).await;
        let all: Vec<u32> = (0..100).collect();
        for key in 0..20 {
            assert_eq!(scene.steps("first", &key.to_string()), all);
        }
        let done = done.load(Ordering::Acquire);
        assert!(done < 1000, "{done} slow ones were waited for");
        dispatcher.shutdown_within(Duration::ZERO).await.unwrap();
    }

    async fn a_slow_handler_of_one_key_holds_up_no_other(db) {
        let (scene, done) = (Scene::new(), Arc::new(AtomicUsize::new(0)));
        let registry = Registry::builder().handler::<first>().handler::<slow>().state(Arc::clone(&done));
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        chores(&outbox, &db.pool, 6000, 1).await;
        let dispatcher = outbox.start().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        for n in 0..2000 {
            outbox.publish(&mut tx, &step(n % 20, n / 20)).await.unwrap();
        }
        tx.commit().await.unwrap();
        scene.seen_at_least(2000).await;
        let done = done.load(Ordering::Acquire);
        assert!(done < 1000, "{done} slow ones were waited for");
        dispatcher.shutdown_within(Duration::ZERO).await.unwrap();
    }
}
