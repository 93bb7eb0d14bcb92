//! Several handlers of one record, and the ways in which a handler can fail.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outbox::{HandlerError, Metadata, Registry, RegistryBuilder, State, outbox_handler};
use outbox_tests::on_each_database;

use crate::scene::{Scene, Step, eventually, first, publish, quick, second, step, third};

#[outbox_handler(id = "falls-back", fallback = give_up)]
async fn falls_back(
    event: Step,
    meta: &Metadata,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    scene.play("falls-back", &event, meta)
}

async fn give_up(event: Step, meta: &Metadata, State(fallbacks): State<Arc<AtomicUsize>>) {
    assert_eq!((event.n, meta.attempt()), (1, 2));
    fallbacks.fetch_add(1, Ordering::AcqRel);
}

#[outbox_handler(id = "sleeps", timeout = "50ms")]
async fn sleeps(
    event: Step,
    meta: &Metadata,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    scene.play("sleeps", &event, meta)?;
    match meta.attempt() {
        1 => std::future::pending().await,
        _ => Ok(()),
    }
}

/// The number of invocations that run now, and the highest number so far.
#[derive(Debug, Default)]
struct Concurrency {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[outbox_handler(id = "two-at-once", concurrency = 2)]
async fn two_at_once(
    event: Step,
    meta: &Metadata,
    State(concurrency): State<Arc<Concurrency>>,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    let now = concurrency.now.fetch_add(1, Ordering::AcqRel) + 1;
    concurrency.most.fetch_max(now, Ordering::AcqRel);
    tokio::time::sleep(Duration::from_millis(1)).await;
    concurrency.now.fetch_sub(1, Ordering::AcqRel);
    scene.play("two-at-once", &event, meta)
}

fn all_three() -> RegistryBuilder {
    Registry::builder()
        .handler::<first>()
        .handler::<second>()
        .handler::<third>()
}

const COMPLETED: &str = "select count(*) from outbox_record where status = 'completed'";

on_each_database! {
    async fn only_the_handler_that_failed_runs_again(db) {
        let scene = Scene::with(|_, meta| match meta.handler_id() {
            "second" if meta.attempt() < 3 => Err("not yet".into()),
            _ => Ok(()),
        });
        let outbox = scene.outbox_of(&db.pool, all_three()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1]).await;
        scene.seen_at_least(3).await;
        eventually("a completed record", async || database::number(&db.pool, COMPLETED).await == 1).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("first", "a", 1), [1]);
        assert_eq!(scene.attempts("second", "a", 1), [1, 2, 3]);
        assert_eq!(scene.attempts("third", "a", 1), [1]);
        let failures = "select count(*) from outbox_failure where handler = 'second' and attempt in (1, 2)";
        assert_eq!(database::number(&db.pool, failures).await, 2);
    }

    async fn a_permanent_failure_keeps_the_record_open_and_no_other_delivery(db) {
        let scene = Scene::with(|_, meta| match meta.handler_id() {
            "second" => Err(HandlerError::permanent("never")),
            _ => Ok(()),
        });
        let outbox = scene.outbox_of(&db.pool, all_three()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1]).await;
        scene.seen_at_least(2).await;
        let failed = "select count(*) from outbox_delivery where status = 'failed' and handler = 'second' and error = 'never'";
        eventually("a failure", async || database::number(&db.pool, failed).await == 1).await;
        dispatcher.shutdown().await.unwrap();
        let open = "select count(*) from outbox_delivery where handler <> 'second' and status <> 'completed'";
        assert_eq!(database::number(&db.pool, open).await, 0);
        assert_eq!(database::texts(&db.pool, "select status from outbox_record").await, ["split"]);
        assert_eq!(scene.tried().len(), 3);
    }

    async fn a_fallback_completes_a_delivery_that_failed_permanently(db) {
        let scene = Scene::with(|event, _| match event.n {
            1 => Err("never".into()),
            _ => Ok(()),
        });
        let fallbacks = Arc::new(AtomicUsize::new(0));
        let registry = Registry::builder().handler::<falls_back>().state(Arc::clone(&fallbacks));
        let outbox = scene.outbox_of(&db.pool, registry).retry_policy(quick(1)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1, 2]).await;
        scene.seen_at_least(1).await;
        eventually("both completed", async || database::number(&db.pool, COMPLETED).await == 2).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("falls-back", "a", 1), [1, 2]);
        assert_eq!(fallbacks.load(Ordering::Acquire), 1);
    }

    async fn a_panic_fails_only_its_own_record(db) {
        let scene = Scene::with(|event, meta| {
            assert!(event.n != 1 || meta.attempt() > 2, "this panic is part of the test");
            Ok(())
        });
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1, 2]).await;
        scene.seen_at_least(2).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("first", "a"), [1, 2]);
        assert_eq!(scene.attempts("first", "a", 1), [1, 2, 3]);
        let kinds = database::texts(&db.pool, "select kind from outbox_failure").await;
        assert_eq!(kinds, ["panicked", "panicked"]);
    }

    async fn a_handler_that_exceeds_its_timeout_is_retried(db) {
        let scene = Scene::new();
        let registry = Registry::builder().handler::<sleeps>();
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1]).await;
        eventually("a completed record", async || database::number(&db.pool, COMPLETED).await == 1).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("sleeps", "a", 1), [1, 2]);
        let kinds = database::texts(&db.pool, "select kind from outbox_failure").await;
        assert_eq!(kinds, ["timed_out"]);
    }

    async fn a_handler_never_runs_more_invocations_at_once_than_its_concurrency(db) {
        let scene = Scene::with(|event, meta| match (event.n, meta.attempt()) {
            (0, 1) => Err("once".into()),
            _ => Ok(()),
        });
        let concurrency = Arc::new(Concurrency::default());
        let registry = Registry::builder().handler::<two_at_once>().state(Arc::clone(&concurrency));
        let outbox = scene.outbox_of(&db.pool, registry).build().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        for n in 0..200 {
            outbox.publish(&mut tx, &step(n % 50, n / 50)).await.unwrap();
        }
        tx.commit().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(200).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(concurrency.most.load(Ordering::Acquire), 2);
        assert_eq!(scene.seen().len(), 200);
    }
}
