//! Keys in which something blocks, and those beside them.

use outbox::{Database, Dispatcher, Outbox};
use outbox_tests::{database, on_each_database};
use sqlx::Pool;

use crate::scene::{Scene, Step, eventually, quick, step};

const FAILED: &str = "select count(*) from outbox_delivery where status = 'failed'";
const WAITING: &str = "select count(*) from outbox_delivery where status = 'waiting'";

/// The first step of a bad key fails for good.
fn scene() -> Scene {
    Scene::with(
        |event, _| match event.n == 0 && event.key.starts_with("bad") {
            true => Err("bad".into()),
            false => Ok(()),
        },
    )
}

/// As a process that was just started.
async fn start<Db: Database>(scene: &Scene, pool: &Pool<Db>) -> (Outbox<Db>, Dispatcher) {
    let outbox = scene.outbox(pool).retry_policy(quick(0)).build().await;
    let outbox = outbox.expect("an outbox");
    let dispatcher = outbox.start().await.expect("a dispatcher");
    (outbox, dispatcher)
}

/// The same step of so many bad keys and so many good ones.
async fn publish<Db: Database>(outbox: &Outbox<Db>, pool: &Pool<Db>, n: u32, keys: (u32, u32)) {
    let bad = (0..keys.0).map(|key| step(format!("bad {key}"), n));
    let good = (0..keys.1).map(|key| step(format!("good {key}"), n));
    let steps: Vec<Step> = bad.chain(good).collect();
    let mut tx = pool.begin().await.expect("a transaction");
    let written = outbox.publish_all(&mut tx, &steps).await;
    written.expect("steps are valid");
    tx.commit().await.expect("a commit");
}

on_each_database! {
    async fn who_starts_anew_knows_which_of_many_keys_are_blocked(db) {
        let scene = scene();
        let (outbox, dispatcher) = start(&scene, &db.pool).await;
        publish(&outbox, &db.pool, 0, (100, 200)).await;
        scene.seen_at_least(200).await;
        eventually("the failures", async || database::number(&db.pool, FAILED).await == 100).await;
        // Behind what was written by this process, and what was by the one before it.
        publish(&outbox, &db.pool, 1, (100, 200)).await;
        scene.seen_at_least(400).await;
        eventually("those behind them", async || database::number(&db.pool, WAITING).await == 100).await;
        dispatcher.shutdown().await.unwrap();
        publish(&outbox, &db.pool, 2, (100, 200)).await;
        let (outbox, dispatcher) = start(&scene, &db.pool).await;
        scene.seen_at_least(600).await;
        publish(&outbox, &db.pool, 3, (100, 200)).await;
        scene.seen_at_least(800).await;
        eventually("those behind them", async || database::number(&db.pool, WAITING).await == 300).await;
        dispatcher.shutdown().await.unwrap();
        let tried = scene.tried();
        let early: Vec<_> = tried.iter().filter(|tried| tried.n > 0 && tried.key.starts_with("bad")).collect();
        assert!(early.is_empty(), "{early:?}");
    }
}

#[tokio::test]
async fn postgres_is_not_asked_about_keys_in_which_nothing_blocks() {
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
    // One by one, so that they can be counted.
    let options = db.pool.connect_options();
    let one_by_one = [
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_seqscan", "off"),
    ];
    let pool = sqlx::PgPool::connect_with((*options).clone().options(one_by_one))
        .await
        .unwrap();

    let before = looked_up(&db.pool).await;
    publish(&outbox, &db.pool, 1, (10, 2_000)).await;
    let (_, dispatcher) = start(&scene, &pool).await;
    scene.seen_at_least(2_000).await;
    dispatcher.shutdown().await.unwrap();
    pool.close().await;
    // Twice for each partition, by the sweep, and once for each of the ten.
    let looked_up = looked_up(&db.pool).await - before;
    assert!((64..1_000).contains(&looked_up), "{looked_up}");
}

/// How often something was looked for in the index of lanes.
async fn looked_up(pool: &sqlx::PgPool) -> i64 {
    // What a session counted can be seen when it has ended.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let sql =
        "select idx_scan from pg_stat_user_indexes where indexrelname = 'outbox_delivery_lane'";
    database::postgres::number(pool, sql).await
}
