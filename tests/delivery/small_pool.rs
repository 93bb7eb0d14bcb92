//! Pools with fewer connections than the dispatcher keeps when it can.

use outbox::{Database, Registry};
use outbox_tests::on_each_database;
use sqlx::{Connection, Pool, pool::PoolOptions};

use crate::scene::{Scene, first, publish, second};

/// A pool of at most `connections` connections to the same database.
async fn small<Db: Database>(pool: &Pool<Db>, connections: u32) -> Pool<Db>
where
    <Db::Connection as Connection>::Options: Clone,
{
    let options = (*pool.connect_options()).clone();
    let small = PoolOptions::new().max_connections(connections);
    let connected = small.connect_with(options).await;
    connected.expect("a database")
}

on_each_database! {
    async fn a_pool_of_one_two_or_three_connections_is_enough(db) {
        for connections in [1, 2, 3] {
            let pool = small(&db.pool, connections).await;
            let scene = Scene::with(|event, meta| match (event.n % 10, meta.attempt()) {
                (5, 1) => Err("once".into()),
                _ => Ok(()),
            });
            let registry = Registry::builder().handler::<first>().handler::<second>();
            let outbox = scene.outbox_of(&pool, registry).build().await.unwrap();
            let dispatcher = outbox.start().await.unwrap();
            for n in (0..100).step_by(10) {
                for key in ["a", "b", "c"] {
                    publish(&outbox, &pool, key, n..n + 10).await;
                }
            }
            scene.seen_at_least(600).await;
            dispatcher.shutdown().await.unwrap();
            let all: Vec<u32> = (0..100).collect();
            for key in ["a", "b", "c"] {
                assert_eq!(scene.steps("first", key), all, "{key}, {connections} connections");
                assert_eq!(scene.steps("second", key), all, "{key}, {connections} connections");
            }
            let open = "select count(*) from outbox_record where status <> 'completed'";
            assert_eq!(database::number(&pool, open).await, 0);
            pool.close().await;
        }
    }
}
