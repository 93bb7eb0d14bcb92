//! A worker: a process that uses the library as a service does.

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
    handlers::{Recorder, handlers, quiet_panics},
    history::History,
    server::Kind,
};

/// The arguments of a worker process.
#[derive(Debug)]
pub(crate) struct WorkerArguments {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) history: PathBuf,
    pub(crate) offset: PathBuf,
    pub(crate) lease: Duration,
    pub(crate) poll: Option<Duration>,
}

/// Runs until `SIGTERM`, or until the chaos program has ended.
pub(crate) async fn run(kind: Kind, arguments: WorkerArguments) -> anyhow::Result<()> {
    quiet_panics();
    end_with_parent();
    match kind {
        Kind::Postgres => work::<Postgres>(arguments).await,
        Kind::Mysql => work::<MySql>(arguments).await,
        Kind::Sqlite => work::<Sqlite>(arguments).await,
    }
}

/// Ends this process when the chaos program has ended in any way: then the pipe at standard input
/// is closed.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
}

async fn work<Db: Tested>(arguments: WorkerArguments) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let process = format!("{}-{}", arguments.name, std::process::id());
    let history = History::open(&arguments.history, &process)?;
    let recorder = Recorder::new(arguments.name.clone(), history);
    let clock = OffsetClock::follow(arguments.offset.clone());
    let dispatcher = tokio::select! {
        dispatcher = start::<Db>(&arguments, clock, recorder) => dispatcher,
        _ = terminate.recv() => return Ok(()),
    };
    terminate.recv().await;
    dispatcher.shutdown().await?;
    Ok(())
}

/// Starts a dispatcher; tries every 200 ms until the database is available.
async fn start<Db: Tested>(
    arguments: &WorkerArguments,
    clock: OffsetClock,
    recorder: Recorder,
) -> Dispatcher {
    loop {
        match try_start::<Db>(arguments, clock.clone(), recorder.clone()).await {
            Ok(dispatcher) => return dispatcher,
            Err(error) => eprintln!("{} cannot start yet: {error:#}", arguments.name),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn try_start<Db: Tested>(
    arguments: &WorkerArguments,
    clock: OffsetClock,
    recorder: Recorder,
) -> anyhow::Result<Dispatcher> {
    let pool: Pool<Db> = Db::pool(&arguments.url, 10).await?;
    let mut config = Config::default();
    config.locking.lease = Some(arguments.lease);
    if let Some(poll) = arguments.poll {
        config.poll_interval = poll;
    }
    let retry = Retry::builder()
        .fixed(Duration::from_millis(20))
        .max_retries(u32::MAX);
    let outbox = Outbox::builder(pool)
        .registry(handlers(Db::KIND).state(recorder))
        .config(config)
        .retry_policy(retry.build()?)
        .clock(clock)
        .build()
        .await?;
    Ok(outbox.start().await?)
}
