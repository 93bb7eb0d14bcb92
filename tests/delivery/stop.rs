//! Shutdown: running records finish or are delivered again, and peers take over at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use outbox::{
    Config, Error, HandlerError, Metadata, Registry, RegistryBuilder, State, outbox_handler,
};
use outbox_tests::{
    database::{self, Fresh},
    on_each_database,
};
use sqlx::{Sqlite, SqlitePool, pool::PoolConnection};

use crate::scene::{Scene, Step, config, eventually, first, publish};

/// How long the handler takes, and how often it has started.
#[derive(Debug, Default)]
struct Work {
    millis: AtomicU64,
    started: AtomicUsize,
}

#[outbox_handler(id = "works")]
async fn works(
    event: Step,
    meta: &Metadata,
    State(work): State<Arc<Work>>,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    work.started.fetch_add(1, Ordering::AcqRel);
    tokio::time::sleep(Duration::from_millis(work.millis.load(Ordering::Acquire))).await;
    scene.play("works", &event, meta)
}

fn takes(millis: u64) -> Arc<Work> {
    let work = Work::default();
    work.millis.store(millis, Ordering::Release);
    Arc::new(work)
}

fn registry(work: &Arc<Work>) -> RegistryBuilder {
    Registry::builder()
        .handler::<works>()
        .state(Arc::clone(work))
}

/// Leases of one second.
fn short_leases() -> Config {
    let mut config = config();
    config.locking.lease = Some(Duration::from_secs(1));
    config
}

async fn has_started(work: &Work, count: usize) {
    eventually("invocations to start", async || {
        work.started.load(Ordering::Acquire) == count
    })
    .await;
}

const OWNED: &str = "select count(*) from outbox_lease where owner is not null";
const ALL: &str = "select count(*) from outbox_lease";
const COMPLETED: &str = "select count(*) from outbox_record where status = 'completed'";

on_each_database! {
    async fn running_records_finish_and_are_not_delivered_again(db) {
        let (scene, work) = (Scene::new(), takes(200));
        let outbox = scene.outbox_of(&db.pool, registry(&work)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        for key in ["a", "b", "c"] {
            publish(&outbox, &db.pool, key, [1, 2]).await;
        }
        has_started(&work, 3).await;
        assert!(database::number(&db.pool, OWNED).await > 0);
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.seen().len(), 3);
        assert_eq!(database::number(&db.pool, COMPLETED).await, 3);
        assert_eq!(database::number(&db.pool, OWNED).await, 0);
        assert!(database::number(&db.pool, ALL).await > 0);

        work.millis.store(0, Ordering::Release);
        let outbox = scene.outbox_of(&db.pool, registry(&work)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(6).await;
        dispatcher.shutdown().await.unwrap();
        for key in ["a", "b", "c"] {
            assert_eq!(scene.steps("works", key), [1, 2]);
        }
        assert_eq!(work.started.load(Ordering::Acquire), 6);
    }

    async fn a_finished_handler_does_not_run_again_with_an_unfinished_one(db) {
        let (scene, work) = (Scene::new(), takes(60_000));
        let both = || registry(&work).handler::<first>();
        let outbox = scene.outbox_of(&db.pool, both()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        assert!(matches!(outbox.start().await, Err(Error::AlreadyRunning)));
        publish(&outbox, &db.pool, "a", 0..3).await;
        eventually("the quick handler to finish", async || scene.steps("first", "a").len() == 3).await;
        has_started(&work, 1).await;
        dispatcher.shutdown_within(Duration::from_millis(50)).await.unwrap();

        work.millis.store(0, Ordering::Release);
        let outbox = scene.outbox_of(&db.pool, both()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        eventually("all records to be completed", async || database::number(&db.pool, COMPLETED).await == 3).await;
        dispatcher.shutdown_within(Duration::MAX).await.unwrap();
        assert_eq!(scene.steps("first", "a"), [0, 1, 2]);
        assert_eq!(scene.steps("works", "a"), [0, 1, 2]);
        assert_eq!(scene.attempts("works", "a", 0), [1]);
    }

    async fn a_handler_that_exceeds_the_grace_time_is_cancelled_and_runs_again_without_a_failure(db) {
        let (scene, work) = (Scene::new(), takes(600_000));
        let outbox = scene.outbox_of(&db.pool, registry(&work)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1, 2]).await;
        has_started(&work, 1).await;
        dispatcher.shutdown_within(Duration::from_millis(50)).await.unwrap();
        assert_eq!(database::number(&db.pool, OWNED).await, 0);
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_failure").await, 0);

        work.millis.store(0, Ordering::Release);
        let outbox = scene.outbox_of(&db.pool, registry(&work)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(2).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("works", "a"), [1, 2]);
        assert!(scene.tried().iter().all(|tried| tried.attempt == 1));
        assert_eq!(work.started.load(Ordering::Acquire), 3);
    }

    async fn a_peer_takes_over_at_once_after_a_shutdown(db) {
        let (scene, work) = (Scene::new(), takes(0));
        let outbox = scene.outbox_of(&db.pool, registry(&work)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        // The peer owns nothing yet. It claims again within a third of its lease.
        let other = scene.outbox_of(&db.pool, registry(&work)).config(short_leases()).build().await.unwrap();
        let successor = other.start().await.unwrap();
        dispatcher.shutdown().await.unwrap();
        publish(&outbox, &db.pool, "a", [1]).await;
        scene.seen_at_least(1).await;
        successor.shutdown().await.unwrap();
        assert_eq!(database::number(&db.pool, OWNED).await, 0);
    }

    async fn a_dropped_dispatcher_is_replaced_when_its_lease_has_expired(db) {
        let (scene, work) = (Scene::new(), takes(600_000));
        let outbox = scene.outbox_of(&db.pool, registry(&work)).config(short_leases()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1, 2]).await;
        has_started(&work, 1).await;
        drop(dispatcher);
        work.millis.store(0, Ordering::Release);
        let other = scene.outbox_of(&db.pool, registry(&work)).config(short_leases()).build().await.unwrap();
        let successor = other.start().await.unwrap();
        scene.seen_at_least(2).await;
        successor.shutdown().await.unwrap();
        assert_eq!(scene.steps("works", "a"), [1, 2]);
        assert!(scene.tried().iter().all(|tried| tried.attempt == 1));
        assert_eq!(work.started.load(Ordering::Acquire), 3);
    }

    async fn a_shutdown_longer_than_the_lease_hands_no_partition_over_too_early(db) {
        let (scene, work) = (Scene::new(), takes(2500));
        let outbox = scene.outbox_of(&db.pool, registry(&work)).config(short_leases()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1, 2]).await;
        has_started(&work, 1).await;
        work.millis.store(0, Ordering::Release);
        let other = scene.outbox_of(&db.pool, registry(&work)).config(short_leases()).build().await.unwrap();
        let successor = other.start().await.unwrap();
        dispatcher.shutdown().await.unwrap();
        scene.seen_at_least(2).await;
        successor.shutdown().await.unwrap();
        assert_eq!(scene.steps("works", "a"), [1, 2]);
        assert_eq!(work.started.load(Ordering::Acquire), 2);
    }
}

/// Takes SQLite's only write lock. Until the connection commits or is dropped, every statement that
/// writes hangs.
async fn lock_database(db: &Fresh<Sqlite>) -> PoolConnection<Sqlite> {
    let mut other = db.pool.acquire().await.expect("a connection");
    let lock = sqlx::query("begin immediate").execute(&mut *other).await;
    lock.expect("the lock");
    other
}

async fn unlock_database(mut other: PoolConnection<Sqlite>) {
    let unlock = sqlx::query("commit").execute(&mut *other).await;
    unlock.expect("a commit");
}

#[tokio::test]
async fn a_record_that_finishes_while_the_database_hangs_is_not_delivered_again() {
    let db = database::sqlite::fresh().await;
    let (scene, work) = (Scene::new(), takes(400));
    let builder = scene.outbox_of(&db.pool, registry(&work));
    let outbox = builder.build().await.expect("an outbox");
    let dispatcher = outbox.start().await.expect("a dispatcher");
    publish(&outbox, &db.pool, "a", [1]).await;
    has_started(&work, 1).await;
    let lock = lock_database(&db).await;
    // The handler ends before the deadline, the database answers after it.
    let stop = tokio::spawn(dispatcher.shutdown_within(Duration::from_millis(700)));
    tokio::time::sleep(Duration::from_millis(1000)).await;
    unlock_database(lock).await;
    stop.await.expect("a task").expect("a shutdown");
    assert_eq!(scene.steps("works", "a"), [1]);
    assert_eq!(database::sqlite::number(&db.pool, COMPLETED).await, 1);
}

#[tokio::test]
async fn the_dispatcher_writes_nothing_after_the_shutdown_has_returned() {
    let db = database::sqlite::fresh().await;
    let short_timeout = (*db.pool.connect_options())
        .clone()
        .busy_timeout(Duration::from_millis(50));
    let pool = SqlitePool::connect_with(short_timeout)
        .await
        .expect("SQLite");
    let (scene, work) = (Scene::new(), takes(300));
    let builder = scene.outbox_of(&pool, registry(&work));
    let outbox = builder.build().await.expect("an outbox");
    let dispatcher = outbox.start().await.expect("a dispatcher");
    publish(&outbox, &pool, "a", [1]).await;
    has_started(&work, 1).await;
    let lock = lock_database(&db).await;
    let stop = dispatcher.shutdown_within(Duration::from_millis(500));
    stop.await.expect("a shutdown");
    assert_eq!(scene.steps("works", "a"), [1]);
    unlock_database(lock).await;
    // A task that still retried would do so at least every two seconds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(database::sqlite::number(&db.pool, COMPLETED).await, 0);
}
