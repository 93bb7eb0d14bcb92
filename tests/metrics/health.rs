//! What probes are told.

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
#[outbox_event(name = "greedy", key = key)]
struct Greedy {
    key: u32,
}

/// Does not give its thread back.
#[outbox_handler(id = "hog")]
async fn hog(_event: Greedy) {
    std::thread::sleep(Duration::from_secs(2));
}

fn handlers() -> outbox::RegistryBuilder {
    Registry::builder().handler::<doom>().handler::<hog>()
}

/// Waits until it is so, for a minute.
async fn until(mut ask: impl AsyncFnMut() -> Health, so: impl Fn(&Health) -> bool) -> Health {
    let mut health = ask().await;
    let begun = Instant::now();
    while !so(&health) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{health:?}");
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

        // Nobody delivers, so it lags.
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
        assert!(health.ready, "no limit, no lag: {health:?}");

        let dispatcher = outbox.start().await.unwrap();
        let health = until(async || strict().await, |health| health.failed == Some(2) && health.ready).await;
        assert_eq!(health.dispatcher, DispatcherHealth::Running);
        publish(2..7).await;
        let health = until(async || strict().await, |health| health.fails).await;
        // As many as matter are counted.
        assert_eq!((health.failed, health.ready, health.live), (Some(3), false, true));
        let health = until(async || outbox.health().within(Duration::from_secs(10)).await, |health| health.failed == Some(7)).await;
        assert!(health.ready && outbox.is_live());

        dispatcher.shutdown().await.unwrap();
        let health = outbox.health().within(Duration::from_secs(10)).await;
        assert_eq!((health.dispatcher, health.live, health.ready), (DispatcherHealth::Stopped, true, false));
        let json = serde_json::to_value(&health).unwrap();
        assert_eq!((&json["dispatcher"], &json["ready"], &json["failed"]), (&"stopped".into(), &false.into(), &7.into()));
    }

    async fn without_tables_nobody_is_ready(db) {
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

    async fn a_database_that_does_not_answer_is_not_waited_for(db) {
        let mut held = Vec::new();
        for _ in 0..db.pool.options().get_max_connections() {
            held.push(db.pool.acquire().await.unwrap());
        }
        let begun = Instant::now();
        let health = db.outbox.health().within(Duration::from_millis(300)).await;
        let took = begun.elapsed();
        assert_eq!((health.database, health.ready, health.live), (DatabaseHealth::TimedOut, false, true));
        assert_eq!((health.lag, health.failed), (None, None));
        assert!((300..3000).contains(&took.as_millis()), "{took:?}");
        drop(held);
        db.pool.close().await;
        let health = db.outbox.health().await;
        assert_eq!((health.database, health.ready), (DatabaseHealth::Failing, false));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_handler_that_keeps_the_thread_is_noticed() {
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
    outbox.publish(&mut tx, &Greedy { key: 1 }).await.unwrap();
    tx.commit().await.unwrap();
    let begun = Instant::now();
    while state() != DispatcherHealth::Stuck {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(outbox.is_live(), "half a minute is not over");
    while state() != DispatcherHealth::Running {
        assert!(begun.elapsed() < Duration::from_secs(40));
        std::thread::sleep(Duration::from_millis(10));
    }
    dispatcher.shutdown().await.unwrap();
}
