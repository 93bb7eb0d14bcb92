//! A process to be killed or frozen.
//!
//! `victim hang URL`: writes with its record's transaction, says so, and never comes back.
//! `victim serve URL`: says what it handles, one line each, with default settings.

use std::{future::pending, time::Duration};

use outbox::{Config, Database, Outbox, Registry, Tx, outbox_handler};
use outbox_tests::effects::Effect;
use sqlx::{MySql, Pool, Postgres, Sqlite};

type Failure = Box<dyn std::error::Error + Send + Sync>;

macro_rules! handler_that_hangs {
    ($($name:ident on $Db:ty,)*) => {$(
        #[outbox_handler(id = "effect")]
        async fn $name(event: Effect, mut tx: Tx<'_, $Db>) -> Result<(), sqlx::Error> {
            event.write_sql().execute(&mut *tx).await?;
            println!("written");
            pending().await
        }
    )*};
}

handler_that_hangs! {
    on_sqlite on Sqlite,
    on_postgres on Postgres,
    on_mysql on MySql,
}

#[outbox_handler(id = "effect")]
async fn serve(event: Effect) {
    println!("{} {}", event.key, event.n);
}

async fn work<Db: Database>(
    pool: Pool<Db>,
    registry: outbox::RegistryBuilder,
    lease: Option<Duration>,
) -> Result<(), Failure> {
    let mut config = Config::default();
    config.locking.lease = lease;
    let outbox = Outbox::builder(pool)
        .registry(registry)
        .config(config)
        .build()
        .await?;
    let _dispatcher = outbox.start().await?;
    pending().await
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let usage = "victim hang|serve URL";
    let (what, url) = (std::env::args().nth(1), std::env::args().nth(2));
    let (what, url) = (what.ok_or(usage)?, url.ok_or(usage)?);
    let hangs = what == "hang";
    let lease = hangs.then_some(Duration::from_secs(1));
    let registry = Registry::builder();
    if url.starts_with("sqlite:") {
        let registry = match hangs {
            true => registry.handler::<on_sqlite>(),
            false => registry.handler::<serve>(),
        };
        work(Pool::<Sqlite>::connect(&url).await?, registry, lease).await
    } else if url.starts_with("postgres") {
        let registry = match hangs {
            true => registry.handler::<on_postgres>(),
            false => registry.handler::<serve>(),
        };
        work(Pool::<Postgres>::connect(&url).await?, registry, lease).await
    } else {
        let registry = match hangs {
            true => registry.handler::<on_mysql>(),
            false => registry.handler::<serve>(),
        };
        work(Pool::<MySql>::connect(&url).await?, registry, lease).await
    }
}
