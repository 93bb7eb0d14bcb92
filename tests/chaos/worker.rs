//! A worker: a process that uses the library as any other does.

use std::{io::Read as _, path::PathBuf, sync::Arc, time::Duration};

use outbox::{
    Config, Dispatcher, HandlerError, Metadata, Outbox, Registry, RegistryBuilder, Retry, State,
    Tx, outbox_handler,
};
use sqlx::{MySql, Pool, Postgres, Sqlite};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

use crate::{
    clock::OffsetClock,
    database::Tested,
    events::{Mood, Plain, Transactional},
    history::{self, End, Fact, Handler, History, Visit},
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

/// Writes down what the handlers of this process do.
#[derive(Debug, Clone)]
struct Witness(Arc<(String, History)>);

impl Witness {
    fn sees(&self, handler: Handler, key: String, number: i64, event: i64, attempt: u32) -> Seen {
        let visit = Visit {
            at: history::now(),
            worker: self.0.0.clone(),
            pid: std::process::id(),
            handler,
            key,
            number,
            event,
            attempt,
        };
        self.0.1.write(&Fact::Start(visit.clone()));
        Seen {
            witness: self.clone(),
            visit: Some(visit),
        }
    }
}

/// An invocation that has begun. Dropped before its end, that is written too.
struct Seen {
    witness: Witness,
    visit: Option<Visit>,
}

impl Seen {
    fn end(&mut self, end: End) {
        if let Some(mut visit) = self.visit.take() {
            visit.at = history::now();
            self.witness.0.1.write(&Fact::End { visit, end });
        }
    }

    /// Sleeps, and fails or panics if that is the mood.
    #[expect(clippy::panic, reason = "handlers that panic are part of the chaos")]
    async fn act(&mut self, mood: Mood) -> Result<(), HandlerError> {
        sleep(mood.sleep).await;
        if mood.panics {
            std::panic::panic_any("as planned");
        }
        if mood.fails {
            self.end(End::Failed);
            return Err("as planned".into());
        }
        Ok(())
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.end(End::Dropped);
    }
}

#[outbox_handler(id = "plain")]
async fn plain(
    event: Plain,
    meta: &Metadata,
    State(witness): State<Witness>,
) -> Result<(), HandlerError> {
    let attempt = meta.attempt();
    let mood = Mood::of(event.event, attempt);
    let mut seen = witness.sees(
        Handler::Plain,
        event.key,
        event.number,
        event.event,
        attempt,
    );
    seen.act(mood).await?;
    seen.end(End::Ok);
    Ok(())
}

macro_rules! transactional {
    ($($name:ident on $Db:ty, slow by 1 / $slow:literal;)*) => {$(
        /// Its end is written before its transaction commits: only the row tells that it did.
        #[outbox_handler(id = "tx")]
        async fn $name(
            event: Transactional,
            meta: &Metadata,
            State(witness): State<Witness>,
            mut tx: Tx<'_, $Db>,
        ) -> Result<(), HandlerError> {
            let attempt = meta.attempt();
            let mut mood = Mood::of(event.event, attempt);
            mood.sleep /= $slow;
            let Transactional { key, number, event } = event;
            let sql = format!(
                "insert into chaos_effect (event, name, number) values ({event}, '{key}', {number})"
            );
            let mut seen = witness.sees(Handler::Tx, key, number, event, attempt);
            <$Db as Tested>::execute(&mut tx, sql).await.inspect_err(|_| seen.end(End::Failed))?;
            seen.act(mood).await?;
            seen.end(End::Ok);
            Ok(())
        }
    )*};
}

transactional! {
    tx_on_postgres on Postgres, slow by 1 / 1;
    tx_on_mysql on MySql, slow by 1 / 1;
    // Holds the only write lock there is.
    tx_on_sqlite on Sqlite, slow by 1 / 20;
}

/// Runs until it is asked to leave, or whoever started it is gone.
pub(crate) async fn run(kind: Kind, orders: Orders) -> anyhow::Result<()> {
    quiet_panics();
    end_with_parent();
    let plain = || Registry::builder().handler::<plain>();
    match kind {
        Kind::Postgres => work::<Postgres>(orders, || plain().handler::<tx_on_postgres>()).await,
        Kind::Mysql => work::<MySql>(orders, || plain().handler::<tx_on_mysql>()).await,
        Kind::Sqlite => work::<Sqlite>(orders, || plain().handler::<tx_on_sqlite>()).await,
    }
}

/// Those that are planned are not worth a line.
fn quiet_panics() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&"as planned") {
            loud(info);
        }
    }));
}

/// However that ends: our standard input is its pipe.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
}

async fn work<Db: Tested>(
    orders: Orders,
    handlers: impl Fn() -> RegistryBuilder,
) -> anyhow::Result<()> {
    let mut leave = signal(SignalKind::terminate())?;
    let process = format!("{}-{}", orders.name, std::process::id());
    let history = History::open(&orders.history, &process)?;
    let witness = Witness(Arc::new((orders.name.clone(), history)));
    let clock = OffsetClock::follow(orders.offset.clone());
    let handlers = || handlers().state(witness.clone());
    let dispatcher = tokio::select! {
        dispatcher = start::<Db>(&orders, clock, handlers) => dispatcher,
        _ = leave.recv() => return Ok(()),
    };
    leave.recv().await;
    dispatcher.shutdown().await?;
    Ok(())
}

/// As soon as the database lets it.
async fn start<Db: Tested>(
    orders: &Orders,
    clock: OffsetClock,
    handlers: impl Fn() -> RegistryBuilder,
) -> Dispatcher {
    loop {
        match try_start::<Db>(orders, clock.clone(), handlers()).await {
            Ok(dispatcher) => return dispatcher,
            Err(error) => eprintln!("{} cannot start yet: {error:#}", orders.name),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn try_start<Db: Tested>(
    orders: &Orders,
    clock: OffsetClock,
    handlers: RegistryBuilder,
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
        .registry(handlers)
        .config(config)
        .retry_policy(again.build()?)
        .clock(clock)
        .build()
        .await?;
    Ok(outbox.start().await?)
}
