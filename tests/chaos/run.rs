//! One run: server, workers, publishers and faults, then a time without faults, then the verdict.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use outbox::Outbox;
use rand::{SeedableRng as _, rngs::StdRng};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    arguments::Arguments,
    checker,
    database::{self, Tested},
    draft,
    drain::{drain, write_effects, write_sent},
    faults::{FaultKind, Faults},
    fleet::Fleet,
    history::{self, History},
    publisher::{Publisher, PublisherShared},
    server::Server,
};

/// How long workers may take to shut down: they give their handlers 25 seconds.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(40);

/// Returns whether the library kept every promise.
pub(crate) async fn run<Db: Tested>(arguments: &Arguments) -> anyhow::Result<bool> {
    let mut server = Server::start(arguments.kind).await?;
    let folder = history_folder(arguments, &server)?;
    let history = Arc::new(History::open(&folder, "chaos")?);
    let shared = publisher_shared::<Db>(arguments, &server, &history).await?;

    let mut fleet = Fleet::new(arguments.for_workers(&folder), server.folder().to_owned());
    for _ in 0..arguments.workers {
        fleet.join(&server).await?;
    }
    let publishers: Vec<_> = (0..arguments.publishers)
        .map(|number| {
            let random = StdRng::seed_from_u64(arguments.seed ^ u64::from(number + 1) << 32);
            tokio::spawn(Publisher::new(Arc::clone(&shared), number, random).run())
        })
        .collect();

    let random = StdRng::seed_from_u64(arguments.seed);
    let kinds = arguments.faults.clone();
    let mut faults = Faults::new(
        &mut server,
        &mut fleet,
        &history,
        random,
        kinds,
        arguments.lease,
    );
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    faults.run::<Db>(end).await?;
    let done = faults.done;

    shared.stop.store(true, Ordering::Relaxed);
    for publisher in publishers {
        publisher.await?;
    }
    shared.pool.close().await;
    eprintln!(
        "quiet     {} transactions committed, {} failed; faults: {done:?}",
        shared.acknowledged.load(Ordering::Relaxed),
        shared.failed.load(Ordering::Relaxed)
    );
    let mut connection = Db::connect(&server.url(None)).await?;
    write_sent::<Db>(&mut connection, &history).await?;
    drain::<Db>(&mut connection, &folder, &mut fleet, arguments.lease).await?;
    fleet.stop_all(LEAVE_TIMEOUT).await?;
    write_effects::<Db>(&mut connection, &history).await?;

    let facts = history::read(&folder)?;
    let verdict = checker::judge(&facts);
    verdict.explain(&facts);
    let missing: Vec<&FaultKind> = (arguments.faults.iter())
        .filter(|kind| !done.contains_key(kind))
        .collect();
    if !missing.is_empty() {
        eprintln!("!! never injected: {missing:?}");
    }
    if fleet.unexpected_ends > 0 {
        eprintln!(
            "!! {} workers ended unexpectedly, or not at all",
            fleet.unexpected_ends
        );
    }
    eprintln!("measured  {} takeovers", verdict.takeovers.len());
    println!("{verdict}");
    Ok(verdict.is_clean()
        && verdict.committed > 0
        && missing.is_empty()
        && fleet.unexpected_ends == 0)
}

fn history_folder(arguments: &Arguments, server: &Server) -> anyhow::Result<PathBuf> {
    let folder = match &arguments.history {
        Some(folder) => folder.clone(),
        None => server.folder().join("history"),
    };
    std::fs::create_dir_all(&folder)?;
    anyhow::ensure!(
        std::fs::read_dir(&folder)?.next().is_none(),
        "{} is not empty: the checker would judge two histories as one",
        folder.display()
    );
    Ok(folder)
}

async fn publisher_shared<Db: Tested>(
    arguments: &Arguments,
    server: &Server,
    history: &Arc<History>,
) -> anyhow::Result<Arc<PublisherShared<Db>>> {
    let url = server.url(None);
    let connecting = async {
        loop {
            match Db::connect(&url).await {
                Ok(connection) => return connection,
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    };
    let mut connection = timeout(Duration::from_secs(30), connecting).await?;
    database::prepare::<Db>(&mut connection, draft::keys(arguments.keys)).await?;
    let pool = Db::pool(&url, arguments.publishers + 1).await?;
    let outbox = Outbox::builder(pool.clone())
        .registry(outbox::Registry::builder().allow_empty())
        .build()
        .await?;
    Ok(Arc::new(PublisherShared {
        pool,
        outbox,
        history: Arc::clone(history),
        keys: arguments.keys,
        stop: AtomicBool::new(false),
        acknowledged: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    }))
}
