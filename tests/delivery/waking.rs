//! A commit of one process reaches the handler of another long before the next poll.

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

/// A poll interval so long that no test finds a record by the poll.
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

/// Publishes from an outbox without a dispatcher. Returns the time from the commit until the handler
/// of the other outbox has run.
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
    async fn a_dispatcher_finds_records_of_another_process_long_before_the_poll(db) {
        let scene = Scene::new();
        let dispatcher = start(&db.pool, &scene).await;
        let mut latencies = Vec::new();
        for n in 0..20 {
            // The idle times grow, so that the dispatcher listens in the end.
            tokio::time::sleep(Duration::from_millis(u64::from(n) * 40)).await;
            latencies.push(latency(&db.outbox, &db.pool, &scene, n).await);
        }
        latencies.sort();
        println!("commit to handler in another process: p50 {:?}, longest {:?}", latencies[10], latencies[19]);
        assert!(latencies[10] < Duration::from_millis(200), "{latencies:?}");
        dispatcher.shutdown().await.expect("a shutdown");
    }

        // The transaction begins before the dispatcher listens, and commits after that.
        async fn a_dispatcher_finds_a_transaction_that_was_open_when_it_started_to_listen(db) {
        let scene = Scene::new();
        let dispatcher = start(&db.pool, &scene).await;
        for n in 0..5 {
            let mut tx = db.pool.begin().await.expect("a transaction");
            db.outbox.publish(&mut tx, &step("slow", n)).await.expect("a step is valid");
            // In SQLite no other connection can write until the commit, not even a lease.
            tokio::time::sleep(Duration::from_millis(700)).await;
            tx.commit().await.expect("a commit");
            let committed = Instant::now();
            scene.seen_at_least(n as usize + 1).await;
            assert!(committed.elapsed() < Duration::from_secs(10), "{:?}", committed.elapsed());
        }
        assert_eq!(scene.steps("first", "slow"), [0, 1, 2, 3, 4]);
        dispatcher.shutdown().await.expect("a shutdown");
    }

    async fn a_delayed_record_of_another_process_is_delivered_when_it_is_due(db) {
        let scene = Scene::new();
        let dispatcher = start(&db.pool, &scene).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut tx = db.pool.begin().await.expect("a transaction");
                let later = step("later", 1);
                let schedule = db.outbox.schedule(&later).delay(Duration::from_secs(1));
                let _ = schedule.send(&mut tx).await.expect("a step is valid");
        tx.commit().await.expect("a commit");
        let committed = Instant::now();
        scene.seen_at_least(1).await;
        let took = committed.elapsed();
        assert!(took > Duration::from_millis(900) && took < Duration::from_secs(10), "{took:?}");
        dispatcher.shutdown().await.expect("a shutdown");
    }
}

async fn listen(pool: &Pool<Postgres>) -> PgListener {
    let mut listener = PgListener::connect_with(pool).await.expect("a listener");
    listener.listen("outbox_").await.expect("to listen");
    listener
}

/// The payload of the next notification, or `None` after 300 ms without one.
async fn next_notification(listener: &mut PgListener) -> Option<String> {
    let received = tokio::time::timeout(Duration::from_millis(300), listener.recv()).await;
    received
        .ok()
        .map(|notification| notification.expect("a notification").payload().to_owned())
}

#[tokio::test]
async fn publish_notifies_only_while_a_live_instance_listens() {
    let db = database::postgres::fresh().await;
    let mut listener = listen(&db.pool).await;
    let instance = |listening: bool, expires: &str| {
        format!(
            "insert into outbox_instance (id, listening, expires_at) values (gen_random_uuid(), {listening}, now() + interval '{expires}')"
        )
    };
    // First no instance exists, then one that does not listen, then one that listened and expired.
    for row in [
        None,
        Some(instance(false, "1 hour")),
        Some(instance(true, "-1 s")),
    ] {
        if let Some(row) = row {
            database::postgres::execute(&db.pool, &row).await;
        }
        publish(&db.outbox, &db.pool, "key", [1, 2]).await;
        assert_eq!(next_notification(&mut listener).await, None);
    }
    let listening = instance(true, "1 hour");
    database::postgres::execute(&db.pool, &listening).await;
    // No notification before the commit, and none after a rollback.
    let mut tx = db.pool.begin().await.expect("a transaction");
    db.outbox
        .publish(&mut tx, &step("key", 3))
        .await
        .expect("a step");
    assert_eq!(next_notification(&mut listener).await, None);
    tx.rollback().await.expect("a rollback");
    assert_eq!(next_notification(&mut listener).await, None);
    let partition =
        database::postgres::number(&db.pool, "select part::bigint from outbox_record limit 1")
            .await;
    let mut tx = db.pool.begin().await.expect("a transaction");
    db.outbox
        .publish(&mut tx, &step("key", 3))
        .await
        .expect("a step");
    tx.commit().await.expect("a commit");
    assert_eq!(
        next_notification(&mut listener).await,
        Some(partition.to_string())
    );
    // One notification for many records names each partition once.
    let mut tx = db.pool.begin().await.expect("a transaction");
    let steps: Vec<_> = (0..1000).map(|n| step(n, n)).collect();
    db.outbox.publish_all(&mut tx, &steps).await.expect("steps");
    tx.commit().await.expect("a commit");
    let payload = next_notification(&mut listener)
        .await
        .expect("a notification");
    let mut partitions: Vec<u16> = payload
        .split(',')
        .map(|partition| partition.parse().expect("a number"))
        .collect();
    partitions.sort_unstable();
    assert_eq!(partitions, (0..64).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_dispatcher_that_is_notified_too_often_stops_listening() {
    let db = database::postgres::fresh().await;
    let scene = Scene::new();
    let dispatcher = start(&db.pool, &scene).await;
    let is_listening = async || {
        let sql = "select count(*) from outbox_instance where listening";
        database::postgres::number(&db.pool, sql).await == 1
    };
    eventually("the dispatcher to listen", is_listening).await;
    let mut listener = listen(&db.pool).await;
    for n in 0..400 {
        publish(&db.outbox, &db.pool, &n.to_string(), [1]).await;
    }
    assert!(!is_listening().await);
    scene.seen_at_least(400).await;
    let mut notifications = 0;
    while next_notification(&mut listener).await.is_some() {
        notifications += 1;
    }
    assert!(
        (1..200).contains(&notifications),
        "{notifications} for 400 records"
    );
    eventually("the dispatcher to listen again", is_listening).await;
    dispatcher.shutdown().await.expect("a shutdown");
}

#[tokio::test]
async fn the_dispatcher_listens_again_after_its_connections_were_terminated() {
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
    let (count_new, count_reused) = (count(&acquired), count(&acquired));
    let connecting = PgPoolOptions::new()
        .after_connect(move |_, _| {
            count_new();
            Box::pin(async { Ok(()) })
        })
        .before_acquire(move |_, _| {
            count_reused();
            Box::pin(async { Ok(true) })
        })
        .connect_with((*db.pool.connect_options()).clone());
    let pool = connecting.await.expect("a pool");
    let scene = Scene::new();
    let builder = scene.outbox(&pool).config(hardly_polls());
    let outbox = builder.build().await.expect("an outbox");
    let dispatcher = outbox.start().await.expect("a dispatcher");
    latency(&db.outbox, &db.pool, &scene, 0).await;
    starts_to_listen(&db.pool).await;
    let before = acquired.load(Ordering::Acquire);
    // The watcher's connection is the one with a session lock.
    let end = "select count(pg_terminate_backend(pid)) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())";
    assert_eq!(database::postgres::number(&db.pool, end).await, 1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    starts_to_listen(&db.pool).await;
    assert_eq!(acquired.load(Ordering::Acquire) - before, 1);
    dispatcher.shutdown().await.expect("a shutdown");
}

async fn starts_to_listen(pool: &Pool<Postgres>) {
    eventually("the dispatcher to listen", async || {
        let sql = "select count(*) from outbox_instance where listening";
        database::postgres::number(pool, sql).await == 1
    })
    .await;
}

#[tokio::test]
async fn an_instance_whose_row_was_deleted_listens_again() {
    let db = database::postgres::fresh().await;
    let dispatcher = start(&db.pool, &Scene::new()).await;
    starts_to_listen(&db.pool).await;
    database::postgres::execute(&db.pool, "delete from outbox_instance").await;
    starts_to_listen(&db.pool).await;
    dispatcher.shutdown().await.expect("a shutdown");
}

#[tokio::test]
async fn no_session_lock_stays_after_an_error_or_a_shutdown() {
    let db = database::postgres::fresh().await;
    let dispatcher = start(&db.pool, &Scene::new()).await;
    let locks = "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())";
    starts_to_listen(&db.pool).await;
    for _ in 0..3 {
        // The server cancels a statement of the watcher; its connection stays intact.
        let mut tx = db.pool.begin().await.expect("a transaction");
        let lock = "lock table outbox_instance in access exclusive mode";
        sqlx::query(lock).execute(&mut *tx).await.expect("a lock");
        let cancel = "select count(pg_cancel_backend(pid)) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'with locks%'";
        eventually("a statement to be cancelled", async || {
            database::postgres::number(&db.pool, cancel).await > 0
        })
        .await;
        tx.rollback().await.expect("a rollback");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    eventually("one session lock", async || {
        database::postgres::number(&db.pool, locks).await == 1
    })
    .await;
    dispatcher.shutdown().await.expect("a shutdown");
    eventually("no session lock", async || {
        database::postgres::number(&db.pool, locks).await == 0
    })
    .await;
}
