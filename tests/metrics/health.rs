//! The answers of health probes.

use std::time::{Duration, Instant};

use outbox::{
    Config, HandlerError, Outbox, OutboxEvent, Registry,
    operations::{DatabaseHealth, DispatcherHealth, Health},
    outbox_handler, retryable,
};
use outbox_tests::on_each_database;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "doomed", key = key)]
struct Doomed {
    key: u32,
}

#[outbox_handler(id = "doom")]
#[retryable(max_retries = 0)]
async fn doom(_event: Doomed) -> Result<(), HandlerError> {
    Err(HandlerError::permanent("doomed"))
}

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "blocking", key = key)]
struct Blocking {
    key: u32,
}

/// Blocks its thread.
#[outbox_handler(id = "block-thread")]
async fn block_thread(_event: Blocking) {
    std::thread::sleep(Duration::from_secs(2));
}

fn handlers() -> outbox::RegistryBuilder {
    Registry::builder()
        .handler::<doom>()
        .handler::<block_thread>()
}

/// Asks until `holds` accepts the answer; panics after 60 seconds.
async fn until(mut ask: impl AsyncFnMut() -> Health, holds: impl Fn(&Health) -> bool) -> Health {
    let mut health = ask().await;
    let started = Instant::now();
    while !holds(&health) {
        assert!(started.elapsed() < Duration::from_secs(60), "{health:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        health = ask().await;
    }
    health
}

on_each_database! {
    async fn a_process_is_ready_until_it_lags_fails_or_stops(db) {
        let outbox = Outbox::builder(db.pool.clone()).registry(handlers()).build().await.unwrap();
        let strict = || outbox.health().max_failed(2).max_lag(Duration::from_secs(1)).within(Duration::from_secs(10));
        let health = strict().await;
        assert!(health.live && health.ready, "{health:?}");
        assert_eq!((health.dispatcher, health.database), (DispatcherHealth::NotStarted, DatabaseHealth::Ok));
        assert_eq!((health.lag, health.failed), (Some(Duration::ZERO), Some(0)));

        // No dispatcher runs, so the process lags.
        let publish = async |keys: std::ops::Range<u32>| {
            let mut tx = db.pool.begin().await.unwrap();
            let events: Vec<Doomed> = keys.map(|key| Doomed { key }).collect();
            outbox.publish_all(&mut tx, &events).await.unwrap();
            tx.commit().await.unwrap();
        };
        publish(0..2).await;
        let health = until(async || strict().await, |health| health.lags).await;
        assert!(health.live && !health.ready && !health.fails);
        assert!(health.lag > Some(Duration::from_secs(1)), "{health:?}");
        let health = outbox.health().within(Duration::from_secs(10)).await;
        assert!(health.ready, "without a limit the process does not lag: {health:?}");

        let dispatcher = outbox.start().await.unwrap();
        let health = until(async || strict().await, |health| health.failed == Some(2) && health.ready).await;
        assert_eq!(health.dispatcher, DispatcherHealth::Running);
        publish(2..7).await;
        let health = until(async || strict().await, |health| health.fails).await;
        // The probe counts only up to one more than the limit.
        assert_eq!((health.failed, health.ready, health.live), (Some(3), false, true));
        let health = until(async || outbox.health().within(Duration::from_secs(10)).await, |health| health.failed == Some(7)).await;
        assert!(health.ready && outbox.is_live());

        dispatcher.shutdown().await.unwrap();
        let health = outbox.health().within(Duration::from_secs(10)).await;
        assert_eq!((health.dispatcher, health.live, health.ready), (DispatcherHealth::Stopped, true, false));
        let json = serde_json::to_value(&health).unwrap();
        assert_eq!((&json["dispatcher"], &json["ready"], &json["failed"]), (&"stopped".into(), &false.into(), &7.into()));
    }

    async fn a_process_without_tables_is_not_ready(db) {
        let pool = database::empty().await;
        let mut config = Config::default();
        config.schema_initialization.enabled = false;
        let outbox = Outbox::builder(pool).registry(handlers()).config(config).build().await.unwrap();
        let health = outbox.health().within(Duration::from_secs(10)).await;
        assert_eq!((health.database, health.ready, health.live), (DatabaseHealth::NotMigrated, false, true));
        outbox.migrate().await.unwrap();
        assert!(outbox.health().within(Duration::from_secs(10)).await.ready);
        drop(db);
    }

    async fn a_probe_does_not_wait_longer_than_its_limit_for_the_database(db) {
        let mut connections = Vec::new();
        for _ in 0..db.pool.options().get_max_connections() {
            connections.push(db.pool.acquire().await.unwrap());
        }
        let started = Instant::now();
        let health = db.outbox.health().within(Duration::from_millis(300)).await;
        let took = started.elapsed();
        assert_eq!((health.database, health.ready, health.live), (DatabaseHealth::TimedOut, false, true));
        assert_eq!((health.lag, health.failed), (None, None));
        assert!((300..3000).contains(&took.as_millis()), "{took:?}");
        drop(connections);
        db.pool.close().await;
        let health = db.outbox.health().await;
        assert_eq!((health.database, health.ready), (DatabaseHealth::Failing, false));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_probe_notices_a_handler_that_blocks_the_thread() {
    let db = outbox_tests::database::sqlite::fresh().await;
    let outbox = Outbox::builder(db.pool.clone())
        .registry(handlers())
        .build()
        .await
        .unwrap();
    let dispatcher = outbox.start().await.unwrap();
    let silence = Duration::from_millis(700);
    let state = || outbox.health().max_silence(silence).dispatcher();
    assert_eq!(state(), DispatcherHealth::Running);
    let mut tx = db.pool.begin().await.unwrap();
    outbox.publish(&mut tx, &Blocking { key: 1 }).await.unwrap();
    tx.commit().await.unwrap();
    let started = Instant::now();
    while state() != DispatcherHealth::Stuck {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(
        outbox.is_live(),
        "the default limit of 30 seconds is not over"
    );
    while state() != DispatcherHealth::Running {
        assert!(started.elapsed() < Duration::from_secs(40));
        std::thread::sleep(Duration::from_millis(10));
    }
    dispatcher.shutdown().await.unwrap();
}
