//! A worker: a process that uses the library as any other does.

use std::{io::Read as _, path::PathBuf, time::Duration};

use outbox::{Config, Dispatcher, Outbox, Retry};
use sqlx::{MySql, Pool, Postgres, Sqlite};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

use crate::{
    clock::OffsetClock,
    database::Tested,
    handlers::{Witness, handlers, quiet_panics},
    history::History,
    server::Kind,
};

/// What a worker is told.
#[derive(Debug)]
pub(crate) struct Orders {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) history: PathBuf,
    pub(crate) offset: PathBuf,
    pub(crate) lease: Duration,
    pub(crate) poll: Option<Duration>,
}

/// Runs until it is asked to leave, or whoever started it is gone.
pub(crate) async fn run(kind: Kind, orders: Orders) -> anyhow::Result<()> {
    quiet_panics();
    end_with_parent();
    match kind {
        Kind::Postgres => work::<Postgres>(orders).await,
        Kind::Mysql => work::<MySql>(orders).await,
        Kind::Sqlite => work::<Sqlite>(orders).await,
    }
}

/// However that ends: our standard input is its pipe.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
}

async fn work<Db: Tested>(orders: Orders) -> anyhow::Result<()> {
    let mut leave = signal(SignalKind::terminate())?;
    let process = format!("{}-{}", orders.name, std::process::id());
    let history = History::open(&orders.history, &process)?;
    let witness = Witness::new(orders.name.clone(), history);
    let clock = OffsetClock::follow(orders.offset.clone());
    let dispatcher = tokio::select! {
        dispatcher = start::<Db>(&orders, clock, witness) => dispatcher,
        _ = leave.recv() => return Ok(()),
    };
    leave.recv().await;
    dispatcher.shutdown().await?;
    Ok(())
}

/// As soon as the database lets it.
async fn start<Db: Tested>(orders: &Orders, clock: OffsetClock, witness: Witness) -> Dispatcher {
    loop {
        match try_start::<Db>(orders, clock.clone(), witness.clone()).await {
            Ok(dispatcher) => return dispatcher,
            Err(error) => eprintln!("{} cannot start yet: {error:#}", orders.name),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn try_start<Db: Tested>(
    orders: &Orders,
    clock: OffsetClock,
    witness: Witness,
) -> anyhow::Result<Dispatcher> {
    let pool: Pool<Db> = Db::pool(&orders.url, 10).await?;
    let mut config = Config::default();
    config.locking.lease = Some(orders.lease);
    if let Some(poll) = orders.poll {
        config.poll_interval = poll;
    }
    let again = Retry::builder()
        .fixed(Duration::from_millis(20))
        .max_retries(u32::MAX);
    let outbox = Outbox::builder(pool)
        .registry(handlers(Db::KIND).state(witness))
        .config(config)
        .retry_policy(again.build()?)
        .clock(clock)
        .build()
        .await?;
    Ok(outbox.start().await?)
}
