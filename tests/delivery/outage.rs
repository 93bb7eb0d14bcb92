//! The database is unreachable for 30 seconds while records are published and handled.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use outbox_tests::database;
use sqlx::{mysql::MySqlPoolOptions, postgres::PgPoolOptions};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::scene::{Scene, step};

/// How long the database is unreachable.
const OUTAGE: Duration = Duration::from_secs(30);

/// A proxy between the outbox and its server. It can cut every connection and refuse new ones.
struct Proxy {
    address: SocketAddr,
    up: watch::Sender<bool>,
    refused: Arc<AtomicU32>,
}

impl Proxy {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (up, is_up) = watch::channel(true);
        let refused: Arc<AtomicU32> = Arc::default();
        let count = Arc::clone(&refused);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut up_changes = is_up.clone();
                if !*up_changes.borrow() {
                    count.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(mut server) = TcpStream::connect(server).await else {
                        return;
                    };
                    // The proxy cuts the connection by dropping both ends.
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = up_changes.wait_for(|up| !up) => {}
                    }
                });
            }
        });
        Self {
            address,
            up,
            refused,
        }
    }
}

macro_rules! unreachable_for_30_seconds {
    ($($database:ident: $Options:ty,)*) => {$(
        #[tokio::test]
        async fn $database() {
            let db = database::$database::fresh().await;
            let direct = (*db.pool.connect_options()).clone();
            let server = tokio::net::lookup_host((direct.get_host(), direct.get_port()))
                .await.unwrap().next().unwrap();
            let proxy = Proxy::to(server).await;
            let through_proxy = direct.host("127.0.0.1").port(proxy.address.port());
            let pool = <$Options>::new()
                .acquire_timeout(Duration::from_secs(5))
                .connect_with(through_proxy).await.unwrap();

            let scene = Scene::new();
            let outbox = scene.outbox(&pool).build().await.unwrap();
            let dispatcher = outbox.start().await.unwrap();
            // The writer does not use the proxy, so it publishes during the outage too.
            let stop = Arc::new(AtomicBool::new(false));
            let writer = tokio::spawn({
                let (outbox, pool, stop) = (db.outbox.clone(), db.pool.clone(), Arc::clone(&stop));
                async move {
                    let mut n = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let mut tx = pool.begin().await.unwrap();
                        let steps: Vec<_> = (0..10).map(|key| step(key, n)).collect();
                        outbox.publish_all(&mut tx, &steps).await.unwrap();
                        tx.commit().await.unwrap();
                        n += 1;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    n
                }
            });
            scene.seen_at_least(100).await;
            proxy.up.send(false).unwrap();
            tokio::time::sleep(OUTAGE).await;
            let seen_in_outage = scene.seen().len();
            let refused = proxy.refused.load(Ordering::Relaxed);
            proxy.up.send(true).unwrap();
            scene.seen_at_least(seen_in_outage + 100).await;
            stop.store(true, Ordering::Relaxed);
            let written = writer.await.unwrap();
            scene.seen_at_least(written as usize * 10).await;
            dispatcher.shutdown().await.unwrap();

            println!("{written} steps of ten keys, {refused} refused connections during the outage");
            let all: Vec<u32> = (0..written).collect();
            for key in 0..10 {
                assert_eq!(scene.steps("first", &key.to_string()), all, "key {key}");
            }
                        // The dispatcher needs two connections and soon tries each only every two seconds: it
                        // does not loop without a pause.
                        assert!((5..600).contains(&refused), "{refused} connections were refused");
        }
    )*};
}

unreachable_for_30_seconds! {
    postgres: PgPoolOptions,
    mysql: MySqlPoolOptions,
}

/// SQLite has no server that could be unreachable. Instead another connection locks the file.
#[tokio::test]
async fn sqlite() {
    let db = database::sqlite::fresh().await;
    let scene = Scene::new();
    let outbox = scene.outbox(&db.pool).build().await.unwrap();
    let mut tx = db.pool.begin().await.unwrap();
    let steps: Vec<_> = (0..200).map(|n| step("a", n)).collect();
    outbox.publish_all(&mut tx, &steps).await.unwrap();
    tx.commit().await.unwrap();
    let dispatcher = outbox.start().await.unwrap();
    scene.seen_at_least(1).await;
    let mut other = db.pool.acquire().await.unwrap();
    sqlx::query("begin exclusive")
        .execute(&mut *other)
        .await
        .unwrap();
    tokio::time::sleep(OUTAGE / 2).await;
    sqlx::query("commit").execute(&mut *other).await.unwrap();
    scene.seen_at_least(200).await;
    dispatcher.shutdown().await.unwrap();
    assert_eq!(scene.steps("first", "a"), (0..200).collect::<Vec<u32>>());
}
