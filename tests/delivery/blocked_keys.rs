//! Keys that a failed record blocks, and other keys that it does not block.

use outbox::{Database, Dispatcher, Outbox};
use outbox_tests::{database, on_each_database};
use sqlx::Pool;

use crate::scene::{Scene, Step, eventually, quick, step};

const FAILED: &str = "select count(*) from outbox_delivery where status = 'failed'";
const WAITING: &str = "select count(*) from outbox_delivery where status = 'waiting'";

/// Step 0 of each key that begins with `bad` fails permanently.
fn scene() -> Scene {
    Scene::with(|event, _| {
        if event.n == 0 && event.key.starts_with("bad") {
            return Err("bad".into());
        }
        Ok(())
    })
}

/// Starts a dispatcher whose memory is empty, as that of a new process.
async fn start<Db: Database>(scene: &Scene, pool: &Pool<Db>) -> (Outbox<Db>, Dispatcher) {
    let builder = scene.outbox(pool).retry_policy(quick(0));
    let outbox = builder.build().await.expect("an outbox");
    let dispatcher = outbox.start().await.expect("a dispatcher");
    (outbox, dispatcher)
}

/// Publishes step `n` of `bad` keys whose step 0 failed, and of `good` keys.
async fn publish<Db: Database>(
    outbox: &Outbox<Db>,
    pool: &Pool<Db>,
    n: u32,
    (bad, good): (u32, u32),
) {
    let bad_steps = (0..bad).map(|key| step(format!("bad {key}"), n));
    let good_steps = (0..good).map(|key| step(format!("good {key}"), n));
    let steps: Vec<Step> = bad_steps.chain(good_steps).collect();
    let mut tx = pool.begin().await.expect("a transaction");
    let written = outbox.publish_all(&mut tx, &steps).await;
    written.expect("steps are valid");
    tx.commit().await.expect("a commit");
}

on_each_database! {
    async fn a_restarted_process_knows_which_of_many_keys_are_blocked(db) {
        let scene = scene();
        let (outbox, dispatcher) = start(&scene, &db.pool).await;
        publish(&outbox, &db.pool, 0, (100, 200)).await;
        scene.seen_at_least(200).await;
        eventually("the failures", async || database::number(&db.pool, FAILED).await == 100).await;
        // Steps 1 wait behind failures that this process wrote, steps 2 and 3 behind failures of
                // the process before.
        publish(&outbox, &db.pool, 1, (100, 200)).await;
        scene.seen_at_least(400).await;
        eventually("the records behind the failures to wait", async || database::number(&db.pool, WAITING).await == 100).await;
        dispatcher.shutdown().await.unwrap();
        publish(&outbox, &db.pool, 2, (100, 200)).await;
        let (outbox, dispatcher) = start(&scene, &db.pool).await;
        scene.seen_at_least(600).await;
        publish(&outbox, &db.pool, 3, (100, 200)).await;
        scene.seen_at_least(800).await;
        eventually("the records behind the failures to wait", async || database::number(&db.pool, WAITING).await == 300).await;
        dispatcher.shutdown().await.unwrap();
        let tried = scene.tried();
        let early: Vec<_> = tried.iter().filter(|tried| tried.n > 0 && tried.key.starts_with("bad")).collect();
        assert!(early.is_empty(), "{early:?}");
    }
}

#[tokio::test]
async fn the_fetcher_does_not_query_postgres_for_keys_without_a_blocking_delivery() {
    let db = database::postgres::fresh().await;
    let scene = scene();
    let (outbox, dispatcher) = start(&scene, &db.pool).await;
    publish(&outbox, &db.pool, 0, (10, 0)).await;
    eventually("the failures", async || {
        database::postgres::number(&db.pool, FAILED).await == 10
    })
    .await;
    dispatcher.shutdown().await.unwrap();
    let others = "insert into outbox_delivery (record_id, part, key, handler, status, blocking, attempt, failure_count)
select 1000000000 + n, n % 64, 'other ' || n, 'first', 'failed', true, 1, 1 from generate_series(1, 5000) n";
    database::postgres::execute(&db.pool, others).await;
    database::postgres::execute(&db.pool, "analyze outbox_delivery").await;
    // Without these plans the server looks up key by key, so that the test can count lookups.
    let options = db.pool.connect_options();
    let key_by_key = [
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_seqscan", "off"),
    ];
    let pool = sqlx::PgPool::connect_with((*options).clone().options(key_by_key))
        .await
        .unwrap();

    let lookups_before = lookups(&db.pool).await;
    publish(&outbox, &db.pool, 1, (10, 2_000)).await;
    let (_, dispatcher) = start(&scene, &pool).await;
    scene.seen_at_least(2_000).await;
    dispatcher.shutdown().await.unwrap();
    pool.close().await;
    // The sweep looks up each of 64 partitions twice, and each of the ten blocked keys once.
    let lookups = lookups(&db.pool).await - lookups_before;
    assert!((64..1_000).contains(&lookups), "{lookups}");
}

/// The number of lookups in the index of lanes.
async fn lookups(pool: &sqlx::PgPool) -> i64 {
    // The server adds the counts of a session to the statistics when the session has ended.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let sql =
        "select idx_scan from pg_stat_user_indexes where indexrelname = 'outbox_delivery_lane'";
    database::postgres::number(pool, sql).await
}
