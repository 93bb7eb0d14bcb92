//! Several instances of a service on one database share the partitions. When a partition gets
//! another owner, no event is lost, delivered twice or delivered out of order.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use outbox::{Database, Dispatcher, Outbox, Registry};
use outbox_tests::on_each_database;
use sqlx::{Pool, pool::PoolOptions};

use crate::scene::{Random, Scene, Step, config, eventually, first, publish, step};

/// One instance. It has its own pool, as a process has.
pub(crate) struct Instance {
    pub(crate) scene: Scene,
    pub(crate) dispatcher: Dispatcher,
}

pub(crate) async fn another_pool<Db: Database>(pool: &Pool<Db>) -> Pool<Db> {
    let options = (*pool.connect_options()).clone();
    let pool = PoolOptions::new().max_connections(6);
    pool.connect_with(options).await.expect("a pool")
}

pub(crate) async fn join<Db: Database>(pool: &Pool<Db>, scene: Scene) -> Instance {
    let pool = another_pool(pool).await;
    let outbox = scene.outbox(&pool).build().await.expect("an outbox");
    let dispatcher = outbox.start().await.expect("a dispatcher");
    Instance { scene, dispatcher }
}

/// The number of partitions of each owner, the highest first.
macro_rules! shares {
    ($db:expr) => {{
        let sql = "select concat(count(*), '') from outbox_lease where owner is not null group by owner order by count(*) desc";
        database::texts(&$db.pool, sql).await
    }};
}

on_each_database! {
    async fn partitions_are_shared_fairly_as_instances_come_and_go(db) {
        let mut instances = Vec::new();
        for shares in [&["64"][..], &["32", "32"], &["22", "21", "21"], &["16", "16", "16", "16"]] {
            instances.push(join(&db.pool, Scene::new()).await);
            eventually(&format!("shares of {shares:?}"), async || shares!(db) == shares).await;
        }
                for shares in [&["22", "21", "21"][..], &["32", "32"], &["64"], &[]] {
                    let leaving = instances.remove(0);
                    leaving.dispatcher.shutdown().await.expect("a shutdown");
            eventually(&format!("shares of {shares:?}"), async || shares!(db) == shares).await;
        }
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_instance").await, 0);
    }

    // The number of partitions is chosen when the tables are made. Another number of a later process
    // changes nothing: both hash a key into the same partition.
    async fn the_tables_keep_the_number_of_partitions_that_they_were_made_with(db) {
        let build = async |prefix: &str, partitions| {
            let mut config = config();
            config.schema_initialization.partitions = partitions;
            let scene = Scene::new();
            let registry = Registry::builder().handler::<first>().state(scene.clone());
            let builder = Outbox::builder(db.pool.clone()).registry(registry).config(config);
            (scene, builder.table_prefix(prefix).build().await.expect("an outbox"))
        };
        let (scene, three) = build("few_", 3).await;
        let (_, sixty_four) = build("few_", 64).await;
        assert_eq!(database::number(&db.pool, "select count(*) from few_lease").await, 3);
        for outbox in [&three, &sixty_four] {
            for key in 0..50 {
                publish(outbox, &db.pool, &key.to_string(), [1]).await;
            }
        }
        let spread = format!("select count(*) from (select {} from few_record group by {} having count(distinct part) > 1) k", database::KEY, database::KEY);
        assert_eq!(database::number(&db.pool, &spread).await, 0, "a key has one partition");
        assert_eq!(database::number(&db.pool, "select count(distinct part) from few_record").await, 3);
        let dispatcher = three.start().await.expect("a dispatcher");
        scene.seen_at_least(100).await;
        dispatcher.shutdown().await.expect("a shutdown");

        let (_, many) = build("many_", 200).await;
        let dispatcher = many.start().await.expect("a dispatcher");
        let owned = "select count(*) from many_lease where owner is not null";
        assert_eq!(database::number(&db.pool, owned).await, 200);
        dispatcher.shutdown().await.expect("a shutdown");
    }

    // Three instances and two partitions: the third instance serves when another one leaves.
    async fn an_instance_without_a_partition_takes_over_from_one_that_leaves(db) {
        let mut config = config();
        config.schema_initialization.partitions = 2;
        let join = async || {
            let (pool, scene) = (another_pool(&db.pool).await, Scene::new());
            let registry = Registry::builder().handler::<first>().state(scene.clone());
            let builder = Outbox::builder(pool).registry(registry).config(config.clone());
            let outbox = builder.table_prefix("two_").build().await.expect("an outbox");
            Instance { scene, dispatcher: outbox.start().await.expect("a dispatcher") }
        };
        let shares = async || {
            let sql = "select concat(count(*), '') from two_lease where owner is not null group by owner";
            database::texts(&db.pool, sql).await
        };
        let mut instances = Vec::new();
        for count in 1..=3 {
            instances.push(join().await);
            let expected = [&["2"][..], &["1", "1"], &["1", "1"]][count - 1];
            eventually("a fair share", async || shares().await == expected).await;
        }
        let first = instances.remove(0);
        first.dispatcher.shutdown().await.expect("a shutdown");
        eventually("the third instance to take over", async || shares().await == ["1", "1"]).await;
        for instance in instances {
            instance.dispatcher.shutdown().await.expect("a shutdown");
        }
    }

        // Without faults, each event is delivered once and in order, however instances join and leave.
        async fn no_event_is_delivered_twice_when_partitions_change_owner(db) {
        const KEYS: u32 = 40;
        let scene = Scene::new();
        let publisher = another_pool(&db.pool).await;
        let (outbox, stop) = (db.outbox.clone(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let writer = tokio::spawn(async move {
            let mut n = 0;
            while !stopped.load(std::sync::atomic::Ordering::Acquire) {
                n += 1;
                let mut tx = publisher.begin().await.expect("a transaction");
                let steps: Vec<_> = (0..KEYS).map(|key| step(key, n)).collect();
                outbox.publish_all(&mut tx, &steps).await.expect("steps are valid");
                tx.commit().await.expect("a commit");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            n
        });
        let mut instances = vec![join(&db.pool, scene.clone()).await];
        for _ in 0..4 {
            for _ in 0..2 {
                instances.push(join(&db.pool, scene.clone()).await);
                tokio::time::sleep(Duration::from_millis(600)).await;
            }
            for _ in 0..2 {
                instances.remove(0).dispatcher.shutdown().await.expect("a shutdown");
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Release);
        let count = writer.await.expect("a writer");
        scene.seen_at_least((count * KEYS) as usize).await;
        for instance in instances {
            instance.dispatcher.shutdown().await.expect("a shutdown");
        }
        let mut of_key: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for seen in scene.seen() {
            of_key.entry(seen.key).or_default().push(seen.n);
        }
        for (key, steps) in of_key {
            assert_eq!(steps, (1..=count).collect::<Vec<_>>(), "of key {key}");
        }
    }

    async fn a_stopping_instance_hands_over_within_milliseconds(db) {
        let writer = another_pool(&db.pool).await;
        let staying = join(&db.pool, Scene::new()).await;
        let mut gaps = Vec::new();
        for round in 0..5 {
            let leaving = join(&db.pool, Scene::new()).await;
            eventually("equal shares", async || shares!(db) == ["32", "32"]).await;
            // Find a key that the leaving instance owns.
            let mut n = 0;
            let key = loop {
                n += 1;
                let key = format!("{round}-{n}");
                publish(&db.outbox, &writer, &key, [1]).await;
                eventually("a delivery", async || {
                    let at = |instance: &Instance| !instance.scene.steps("first", &key).is_empty();
                    at(&staying) || at(&leaving)
                }).await;
                if !leaving.scene.steps("first", &key).is_empty() {
                    break key;
                }
            };
            let stopping = Instant::now();
            let (stopped, gap) = tokio::join!(leaving.dispatcher.shutdown(), async {
                publish(&db.outbox, &writer, &key, [2]).await;
                eventually("a delivery by the staying instance", async || staying.scene.steps("first", &key) == [2]).await;
                stopping.elapsed()
            });
            stopped.expect("a shutdown");
            gaps.push(gap);
        }
        gaps.sort();
        println!("from the start of a shutdown to the next delivery: {gaps:?}");
        // The best of five: the machine may be busy with something else.
        assert!(gaps[0] < Duration::from_millis(200), "{gaps:?}");
        staying.dispatcher.shutdown().await.expect("a shutdown");
    }

    async fn a_slow_handler_keeps_only_its_own_partition_from_being_handed_over(db) {
                // The handler takes 6 seconds for events of keys that begin with `slow`.
                let slow = |event: &Step| if event.key.starts_with("slow") {
                    Duration::from_secs(6)
                } else {
                    Duration::ZERO
                };
        let (stopping_scene, staying) = (Scene::new().taking(slow), Scene::new().taking(slow));
        let (first, writer) = (join(&db.pool, stopping_scene.clone()).await, another_pool(&db.pool).await);
        publish(&db.outbox, &writer, "slow", [1]).await;
        stopping_scene.tried_at_least(1).await;
        // The first instance drains the partition of `slow` for two seconds and then keeps it. The
                // second one gets its share of the others.
        let second = join(&db.pool, staying.clone()).await;
        eventually("equal shares", async || shares!(db) == ["32", "32"]).await;
        let stopping = Instant::now();
        let stop = tokio::spawn(first.dispatcher.shutdown());
        eventually("all partitions except one to be handed over", async || shares!(db) == ["63", "1"]).await;
        for key in 0..64 {
            publish(&db.outbox, &writer, &key.to_string(), [1]).await;
        }
        eventually("deliveries of nearly all keys", async || staying.seen().len() >= 55).await;
        assert!(stopping.elapsed() < Duration::from_secs(3), "{:?}", stopping.elapsed());
        stop.await.expect("a task").expect("a shutdown");
        assert_eq!(stopping_scene.steps("first", "slow"), [1]);
        staying.seen_at_least(64).await;
        eventually("all partitions to be handed over", async || shares!(db) == ["64"]).await;
        second.dispatcher.shutdown().await.expect("a shutdown");
        assert!(staying.steps("first", "slow").is_empty());
    }

        // A stopping instance no longer renews its lease. Peers must still not reap it.
        async fn peers_do_not_reap_a_stopping_instance_that_has_work_in_every_partition(db) {
        const KEYS: u32 = 400;
        let scene = Scene::new().taking(|_| Duration::from_secs(4));
        let mut settings = config();
        settings.locking.lease = Some(Duration::from_secs(1));
        let mut dispatchers = Vec::new();
        for _ in 0..2 {
            let pool = another_pool(&db.pool).await;
            let outbox = scene.outbox(&pool).config(settings.clone()).build().await;
            dispatchers.push(outbox.expect("an outbox").start().await.expect("a dispatcher"));
        }
        eventually("equal shares", async || shares!(db) == ["32", "32"]).await;
        let mut tx = db.pool.begin().await.expect("a transaction");
        let steps: Vec<_> = (0..KEYS).map(|key| step(key, 1)).collect();
        db.outbox.publish_all(&mut tx, &steps).await.expect("steps are valid");
        tx.commit().await.expect("a commit");
        scene.tried_at_least(300).await;
        dispatchers.remove(0).shutdown().await.expect("a shutdown");
        scene.seen_at_least(KEYS as usize).await;
        dispatchers.remove(0).shutdown().await.expect("a shutdown");
        assert_eq!(scene.tried().len(), KEYS as usize, "each record once");
    }

        // The silent instance is like a process that was frozen right after it had joined.
        async fn an_instance_serves_the_partitions_that_a_silent_instance_does_not_take(db) {
        let instance = join(&db.pool, Scene::new()).await;
                let expiry = if database::ONE_WRITER {
                    format!("{} + 60000000", database::NOW)
                } else {
                    format!("{} + interval '60' second", database::NOW)
                };
        let id = "select id from outbox_instance";
        let row = format!("insert into outbox_instance (id, started_at, expires_at) values ({}, {}, {expiry})",
            database::ID, database::NOW);
        database::execute(&db.pool, &row).await;
        assert_eq!(database::number(&db.pool, &format!("select count(*) from ({id}) i")).await, 2);
        // In 20 seconds the instance offers partitions and takes them back several times.
        let started = Instant::now();
        let mut longest = Duration::ZERO;
        for n in 0.. {
            if started.elapsed() > Duration::from_secs(20) {
                break;
            }
            let published = Instant::now();
            let mut tx = db.pool.begin().await.expect("a transaction");
            let steps: Vec<_> = (0..200).map(|key| step(key, n)).collect();
            db.outbox.publish_all(&mut tx, &steps).await.expect("steps are valid");
            tx.commit().await.expect("a commit");
            instance.scene.seen_at_least(200 * (n as usize + 1)).await;
            longest = longest.max(published.elapsed());
        }
        println!("with a silent peer, the longest wait is {longest:?}");
        assert!(longest < Duration::from_secs(6), "{longest:?}");
        instance.dispatcher.shutdown().await.expect("a shutdown");
    }

    // 200 keys are spread over all partitions: a partition without an owner would delay some.
    async fn from_one_to_eight_instances_come_and_go_for_a_minute(db) {
        const KEYS: u32 = 200;
        let published = Arc::new(Mutex::new(Vec::new()));
        let waited = Arc::new(Mutex::new(Vec::new()));
        let scene = {
            let (published, waited) = (Arc::clone(&published), Arc::clone(&waited));
            Scene::with(move |event, _| {
                let published: Instant = published.lock().expect("a lock")[event.n as usize];
                waited.lock().expect("a lock").push(published.elapsed());
                Ok(())
            })
        };
        let pool = another_pool(&db.pool).await;
        let (outbox, end) = (db.outbox.clone(), Instant::now() + Duration::from_secs(60));
        let writer = tokio::spawn(async move {
            let mut n = 0;
            while Instant::now() < end {
                let mut tx = pool.begin().await.expect("a transaction");
                published.lock().expect("a lock").push(Instant::now());
                let steps: Vec<_> = (0..KEYS).map(|key| step(key, n)).collect();
                outbox.publish_all(&mut tx, &steps).await.expect("steps are valid");
                tx.commit().await.expect("a commit");
                n += 1;
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            n
        });
        let (mut random, mut instances) = (Random::of(7), vec![join(&db.pool, scene.clone()).await]);
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(random.below(3000))).await;
            let target = 1 + usize::try_from(random.below(8)).expect("a small number");
            while instances.len() < target {
                instances.push(join(&db.pool, scene.clone()).await);
            }
            while instances.len() > target {
                instances.remove(0).dispatcher.shutdown().await.expect("a shutdown");
            }
        }
        let count = writer.await.expect("a writer");
        scene.seen_at_least((count * KEYS) as usize).await;
        for instance in instances {
            instance.dispatcher.shutdown().await.expect("a shutdown");
        }
                let mut waits = waited.lock().expect("a lock").clone();
                waits.sort();
                let at = |percent: usize| waits[(waits.len() - 1) * percent / 100];
                println!("{} events waited: p50 {:?}, p99 {:?}, longest {:?}", waits.len(), at(50), at(99), at(100));
                assert_eq!(waits.len(), (count * KEYS) as usize, "each record once");
        assert!(at(100) < Duration::from_secs(8), "{:?}", at(100));
        for key in 0..KEYS {
            assert_eq!(scene.steps("first", &key.to_string()), (0..count).collect::<Vec<_>>());
        }
    }
}
