//! Settings whose effect only a running dispatcher shows: `locking.refresh-threshold` and `poll-interval`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use outbox::{
    Config, Database, Outbox, OutboxEvent, Registry, State, operations::Change, outbox_handler,
};
use outbox_tests::on_each_database;
use serde::{Deserialize, Serialize};
use sqlx::{Connection, Pool, pool::PoolOptions};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "counted")]
struct Counted {}

/// How often the handler ran.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

#[outbox_handler(id = "count")]
async fn count(_event: Counted, State(runs): State<Runs>) {
    runs.0.fetch_add(1, Ordering::SeqCst);
}

async fn outbox<Db: Database>(pool: &Pool<Db>, config: Config) -> (Outbox<Db>, Runs) {
    let runs = Runs::default();
    let handlers = Registry::builder().handler::<count>().state(runs.clone());
    let outbox = Outbox::builder(pool.clone()).registry(handlers);
    (outbox.config(config).build().await.unwrap(), runs)
}

/// Waits until `holds` returns `true`; panics after 30 seconds.
async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(30), async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited 30 s for {what}");
}

/// When the instance and its leases expire.
const EXPIRY: &str = "select cast(expires_at as char(40)) from outbox_lease \
    union select cast(expires_at as char(40)) from outbox_instance";

/// A lease of 10 minutes with this threshold.
fn ten_minutes(refresh_threshold: u64) -> Config {
    let mut config = Config::default();
    config.poll_interval = Duration::from_millis(200);
    config.locking.lease = Some(Duration::from_secs(600));
    config.locking.refresh_threshold = Some(Duration::from_secs(refresh_threshold));
    config
}

/// A pool without a connection to spare for the watcher, which reports the records of other processes.
async fn unwatched<Db: Database>(pool: &Pool<Db>) -> Pool<Db>
where
    <Db::Connection as Connection>::Options: Clone,
{
    let options = (*pool.connect_options()).clone();
    let small = PoolOptions::new().max_connections(4);
    small.connect_with(options).await.unwrap()
}

on_each_database! {
    async fn a_claim_above_the_refresh_threshold_renews_nothing(db) {
        let (outbox, _) = outbox(&db.pool, ten_minutes(60)).await;
        let dispatcher = outbox.start().await.unwrap();
        // Each pause and each resumption leads to a claim. A claim has read the pause when a record waits for it.
        let waiting = "select count(*) from outbox_delivery where status = 'waiting'";
        let mut expiry = Vec::new();
        for round in 0..3 {
            assert_eq!(outbox.operations().pause("count").await.unwrap(), Change::Applied);
            eventually("the pause", async || {
                let mut tx = db.pool.begin().await.unwrap();
                outbox.publish(&mut tx, &Counted {}).await.unwrap();
                tx.commit().await.unwrap();
                database::number(&db.pool, waiting).await > 0
            }).await;
            let now = database::texts(&db.pool, EXPIRY).await;
            if round > 0 {
                assert_eq!(now, expiry, "round {round}");
            }
            expiry = now;
            assert_eq!(outbox.operations().resume("count").await.unwrap(), Change::Applied);
            eventually("the resumption", async || database::number(&db.pool, waiting).await == 0).await;
        }
        dispatcher.shutdown().await.unwrap();
    }

    async fn a_lease_is_renewed_below_the_refresh_threshold(db) {
        // Less than 599 s remain after one second, less than the default threshold only after 200 s.
        let (outbox, _) = outbox(&db.pool, ten_minutes(599)).await;
        let dispatcher = outbox.start().await.unwrap();
        let first = database::texts(&db.pool, EXPIRY).await;
        eventually("a renewal of everything", async || {
            let now = database::texts(&db.pool, EXPIRY).await;
            now.iter().all(|time| !first.contains(time))
        }).await;
        dispatcher.shutdown().await.unwrap();
    }

    async fn the_poll_alone_delivers_a_record_that_no_signal_announces(db) {
        let pool = unwatched(&db.pool).await;
        // `key` is a word of MySQL.
        let key = if database::KEY == "key" { "key" } else { "`key`" };
        let id = database::ID;
        let insert = format!(
            "insert into outbox_record (part, status, {key}, event, version, event_id, payload, created_at) \
            values (7, 'pending', 'by hand', 'counted', 1, {id}, '{{}}', {})", database::NOW
        );
        let mut config = Config::default();
        config.poll_interval = Duration::from_millis(200);
        let (outbox, runs) = outbox(&pool, config).await;
        let dispatcher = outbox.start().await.unwrap();
        // A dispatcher that has just started reads for other reasons too.
        tokio::time::sleep(Duration::from_secs(1)).await;
        database::execute(&db.pool, &insert).await;
        eventually("the poll", async || runs.0.load(Ordering::SeqCst) == 1).await;
        dispatcher.shutdown().await.unwrap();
    }
}
