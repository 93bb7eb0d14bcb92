//! A slow handler does not delay other handlers.

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

/// The number of invocations that run now, and the highest number so far.
#[derive(Clone, Default)]
struct AtOnce(Arc<(AtomicUsize, AtomicUsize)>);

/// Blocks its thread, as a handler that calls a blocking library does.
#[outbox_handler(id = "blocking")]
async fn blocking(_: Chore, State(at_once): State<AtOnce>) {
    let (now, most) = &*at_once.0;
    most.fetch_max(now.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
    tokio::task::block_in_place(|| std::thread::sleep(Duration::from_millis(400)));
    now.fetch_sub(1, Ordering::AcqRel);
}

/// The runtime has two threads for tasks that do not block.
#[test]
fn handlers_that_block_their_thread_do_not_wait_for_each_other() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let db = outbox_tests::database::sqlite::fresh().await;
        let (scene, at_once) = (Scene::new(), AtOnce::default());
        let registry = Registry::builder()
            .handler::<first>()
            .handler::<blocking>()
            .state(at_once.clone());
        let builder = scene.outbox_of(&db.pool, registry);
        let outbox = builder.build().await.unwrap();
        chores(&outbox, &db.pool, 40, 40).await;
        publish(&outbox, &db.pool, "quick", 0..100).await;
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(100).await;
        dispatcher.shutdown().await.unwrap();
        let most = at_once.0.1.load(Ordering::Acquire);
        assert!(most > 10, "only {most} at once");
        assert_eq!(at_once.0.0.load(Ordering::Acquire), 0);
    });
}

/// Publishes `count` chores of `keys` keys.
async fn chores<Db: Database>(outbox: &Outbox<Db>, pool: &Pool<Db>, count: u32, keys: u32) {
    let mut tx = pool.begin().await.expect("a transaction");
    let chores: Vec<Chore> = (0..count).map(|n| Chore { key: n % keys }).collect();
    let written = outbox.publish_all(&mut tx, &chores).await;
    written.expect("chores are valid");
    tx.commit().await.expect("a commit");
}

on_each_database! {
    async fn a_slow_handler_of_many_keys_delays_no_other_handler(db) {
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
                let slow_runs = done.load(Ordering::Acquire);
                assert!(slow_runs < 1000, "the quick handler waited for {slow_runs} slow invocations");
        dispatcher.shutdown_within(Duration::ZERO).await.unwrap();
    }

    async fn a_slow_handler_of_one_key_delays_no_other_handler(db) {
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
                let slow_runs = done.load(Ordering::Acquire);
                assert!(slow_runs < 1000, "the quick handler waited for {slow_runs} slow invocations");
        dispatcher.shutdown_within(Duration::ZERO).await.unwrap();
    }
}
