//! From the commit of one process to the handler of another, long before the poll.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use outbox::{Config, Database};
use outbox_tests::{database, on_each_database};
use sqlx::{
    Pool, Postgres,
    postgres::{PgListener, PgPoolOptions},
};

use crate::{
    fleet::another_pool,
    scene::{Scene, eventually, publish, step},
};

/// Nothing is found by the poll within a test.
fn hardly_polls() -> Config {
    let mut config = Config::default();
    config.poll_interval = Duration::from_secs(600);
    config
}

async fn start<Db: Database>(pool: &Pool<Db>, scene: &Scene) -> outbox::Dispatcher {
    let pool = another_pool(pool).await;
    let outbox = scene.outbox(&pool).config(hardly_polls()).build().await;
    let dispatcher = outbox.expect("an outbox").start().await;
    dispatcher.expect("a dispatcher")
}

/// Publishes in this "process", which has no dispatcher; how long until a handler of the other
/// has it.
async fn latency<Db: Database>(
    outbox: &outbox::Outbox<Db>,
    pool: &Pool<Db>,
    scene: &Scene,
    n: u32,
) -> Duration {
    let (before, mut tx) = (scene.seen().len(), pool.begin().await.expect("one"));
    let key = format!("key {n}");
    let written = outbox.publish(&mut tx, &step(&key, n)).await;
    written.expect("a step is valid");
    tx.commit().await.expect("a commit");
    let committed = Instant::now();
    while scene.seen().len() == before {
        tokio::time::sleep(Duration::from_micros(200)).await;
        assert!(
            committed.elapsed() < Duration::from_secs(30),
            "only the poll would find it"
        );
    }
    committed.elapsed()
}

on_each_database! {
    async fn what_another_process_publishes_is_found_long_before_the_poll(db) {
        let scene = Scene::new();
        let dispatcher = start(&db.pool, &scene).await;
        let mut latencies = Vec::new();
        for n in 0..20 {
            // Idle for longer and longer: asleep, in the end.
            tokio::time::sleep(Duration::from_millis(u64::from(n) * 40)).await;
            latencies.push(latency(&db.outbox, &db.pool, &scene, n).await);
        }
        latencies.sort();
        println!("commit to handler in another process: p50 {:?}, longest {:?}", latencies[10], latencies[19]);
        assert!(latencies[10] < Duration::from_millis(200), "{latencies:?}");
        dispatcher.shutdown().await.expect("a shutdown");
    }

    // It begins before anybody sleeps, and ends when all do.
    async fn who_was_writing_when_all_fell_asleep_is_found_too(db) {
        let scene = Scene::new();
        let dispatcher = start(&db.pool, &scene).await;
        for n in 0..5 {
            let mut tx = db.pool.begin().await.expect("a transaction");
            db.outbox.publish(&mut tx, &step("slow", n)).await.expect("a step is valid");
            // In SQLite nobody else may write meanwhile, not even a lease.
            tokio::time::sleep(Duration::from_millis(700)).await;
            tx.commit().await.expect("a commit");
            let committed = Instant::now();
            scene.seen_at_least(n as usize + 1).await;
            assert!(committed.elapsed() < Duration::from_secs(10), "{:?}", committed.elapsed());
        }
        assert_eq!(scene.steps("first", "slow"), [0, 1, 2, 3, 4]);
        dispatcher.shutdown().await.expect("a shutdown");
    }

    async fn what_another_process_delays_is_delivered_when_it_is_due(db) {
        let scene = Scene::new();
        let dispatcher = start(&db.pool, &scene).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut tx = db.pool.begin().await.expect("a transaction");
        let later = step("later", 1);
        let later = db.outbox.schedule(&later).delay(Duration::from_secs(1));
        let _ = later.send(&mut tx).await.expect("a step is valid");
        tx.commit().await.expect("a commit");
        let committed = Instant::now();
        scene.seen_at_least(1).await;
        let took = committed.elapsed();
        assert!(took > Duration::from_millis(900) && took < Duration::from_secs(10), "{took:?}");
        dispatcher.shutdown().await.expect("a shutdown");
    }
}

async fn ear(pool: &Pool<Postgres>) -> PgListener {
    let mut ear = PgListener::connect_with(pool).await.expect("a listener");
    ear.listen("outbox_").await.expect("to listen");
    ear
}

async fn heard(ear: &mut PgListener) -> Option<String> {
    let heard = tokio::time::timeout(Duration::from_millis(300), ear.recv()).await;
    heard
        .ok()
        .map(|told| told.expect("a notification").payload().to_owned())
}

#[tokio::test]
async fn nobody_is_told_while_nobody_sleeps() {
    let db = database::postgres::fresh().await;
    let mut ear = ear(&db.pool).await;
    let instance = |asleep: bool, expires: &str| {
        format!(
            "insert into outbox_instance (id, listening, expires_at) values (gen_random_uuid(), {asleep}, now() + interval '{expires}')"
        )
    };
    // Nobody is there; then one that is awake, and one that died asleep.
    for row in [
        None,
        Some(instance(false, "1 hour")),
        Some(instance(true, "-1 s")),
    ] {
        if let Some(row) = row {
            database::postgres::execute(&db.pool, &row).await;
        }
        publish(&db.outbox, &db.pool, "key", [1, 2]).await;
        assert_eq!(heard(&mut ear).await, None);
    }
    let asleep = instance(true, "1 hour");
    database::postgres::execute(&db.pool, &asleep).await;
    // Not before the commit, and nothing after a rollback.
    let mut tx = db.pool.begin().await.expect("a transaction");
    db.outbox
        .publish(&mut tx, &step("key", 3))
        .await
        .expect("a step");
    assert_eq!(heard(&mut ear).await, None);
    tx.rollback().await.expect("a rollback");
    assert_eq!(heard(&mut ear).await, None);
    let part =
        database::postgres::number(&db.pool, "select part::bigint from outbox_record limit 1")
            .await;
    let mut tx = db.pool.begin().await.expect("a transaction");
    db.outbox
        .publish(&mut tx, &step("key", 3))
        .await
        .expect("a step");
    tx.commit().await.expect("a commit");
    assert_eq!(heard(&mut ear).await, Some(part.to_string()));
    // Many at once: every partition once.
    let mut tx = db.pool.begin().await.expect("a transaction");
    let steps: Vec<_> = (0..1000).map(|n| step(n, n)).collect();
    db.outbox.publish_all(&mut tx, &steps).await.expect("steps");
    tx.commit().await.expect("a commit");
    let told = heard(&mut ear).await.expect("to be told");
    let mut parts: Vec<u16> = told
        .split(',')
        .map(|part| part.parse().expect("a number"))
        .collect();
    parts.sort_unstable();
    assert_eq!(parts, (0..64).collect::<Vec<_>>());
}

#[tokio::test]
async fn who_is_told_too_often_stays_awake() {
    let db = database::postgres::fresh().await;
    let scene = Scene::new();
    let dispatcher = start(&db.pool, &scene).await;
    let asleep = async || {
        let sql = "select count(*) from outbox_instance where listening";
        database::postgres::number(&db.pool, sql).await == 1
    };
    eventually("it falls asleep", asleep).await;
    let mut ear = ear(&db.pool).await;
    for n in 0..400 {
        publish(&db.outbox, &db.pool, &n.to_string(), [1]).await;
    }
    assert!(!asleep().await);
    scene.seen_at_least(400).await;
    let mut told = 0;
    while heard(&mut ear).await.is_some() {
        told += 1;
    }
    assert!((1..200).contains(&told), "{told} of 400 were told");
    eventually("it falls asleep again", asleep).await;
    dispatcher.shutdown().await.expect("a shutdown");
}

#[tokio::test]
async fn it_listens_again_after_its_connections_were_ended() {
    let db = database::postgres::fresh().await;
    let scene = Scene::new();
    let dispatcher = start(&db.pool, &scene).await;
    latency(&db.outbox, &db.pool, &scene, 0).await;
    for n in 1..4 {
        let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
        assert!(database::postgres::number(&db.pool, end).await >= 2);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let took = latency(&db.outbox, &db.pool, &scene, n).await;
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
    assert_eq!(scene.seen().len(), 4);
    dispatcher.shutdown().await.expect("a shutdown");
}

#[tokio::test]
async fn a_lost_connection_is_replaced_by_one_connection() {
    let db = database::postgres::fresh().await;
    let acquired: Arc<AtomicUsize> = Arc::default();
    let count = |acquired: &Arc<AtomicUsize>| {
        let acquired = Arc::clone(acquired);
        move || acquired.fetch_add(1, Ordering::AcqRel)
    };
    let (new, reused) = (count(&acquired), count(&acquired));
    let pool = PgPoolOptions::new()
        .after_connect(move |_, _| {
            new();
            Box::pin(async { Ok(()) })
        })
        .before_acquire(move |_, _| {
            reused();
            Box::pin(async { Ok(true) })
        })
        .connect_with((*db.pool.connect_options()).clone());
    let pool = pool.await.expect("a pool");
    let scene = Scene::new();
    let outbox = scene.outbox(&pool).config(hardly_polls()).build().await;
    let dispatcher = outbox.expect("an outbox").start().await;
    let dispatcher = dispatcher.expect("a dispatcher");
    latency(&db.outbox, &db.pool, &scene, 0).await;
    falls_asleep(&db.pool).await;
    let before = acquired.load(Ordering::Acquire);
    // The watcher's connection is the one with a session lock.
    let end = "select count(pg_terminate_backend(pid)) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())";
    assert_eq!(database::postgres::number(&db.pool, end).await, 1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    falls_asleep(&db.pool).await;
    assert_eq!(acquired.load(Ordering::Acquire) - before, 1);
    dispatcher.shutdown().await.expect("a shutdown");
}

async fn falls_asleep(pool: &Pool<Postgres>) {
    eventually("it falls asleep", async || {
        let sql = "select count(*) from outbox_instance where listening";
        database::postgres::number(pool, sql).await == 1
    })
    .await;
}

#[tokio::test]
async fn whose_row_was_deleted_falls_asleep_again() {
    let db = database::postgres::fresh().await;
    let dispatcher = start(&db.pool, &Scene::new()).await;
    falls_asleep(&db.pool).await;
    database::postgres::execute(&db.pool, "delete from outbox_instance").await;
    falls_asleep(&db.pool).await;
    dispatcher.shutdown().await.expect("a shutdown");
}

#[tokio::test]
async fn no_lock_of_a_session_stays_behind() {
    let db = database::postgres::fresh().await;
    let dispatcher = start(&db.pool, &Scene::new()).await;
    let locks = "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())";
    falls_asleep(&db.pool).await;
    for _ in 0..3 {
        // What it asks is refused, on a connection that is well.
        let mut tx = db.pool.begin().await.expect("a transaction");
        let lock = "lock table outbox_instance in access exclusive mode";
        sqlx::query(lock).execute(&mut *tx).await.expect("a lock");
        let cancel = "select count(pg_cancel_backend(pid)) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'with locks%'";
        eventually("to refuse it", async || {
            database::postgres::number(&db.pool, cancel).await > 0
        })
        .await;
        tx.rollback().await.expect("a rollback");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    eventually("one session", async || {
        database::postgres::number(&db.pool, locks).await == 1
    })
    .await;
    dispatcher.shutdown().await.expect("a shutdown");
    eventually("none", async || {
        database::postgres::number(&db.pool, locks).await == 0
    })
    .await;
}
