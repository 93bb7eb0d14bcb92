//! A process that tests kill or freeze.
//!
//! `victim hang URL`: its handler writes with the record's transaction, prints a line and never
//! returns. `victim serve URL`: it prints one line for each record that it handles, with default
//! settings.

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
    let mode = std::env::args().nth(1).ok_or(usage)?;
    let url = std::env::args().nth(2).ok_or(usage)?;
    let hangs = mode == "hang";
    let lease = hangs.then_some(Duration::from_secs(1));
    let registry = Registry::builder();
    if url.starts_with("sqlite:") {
        let handlers = if hangs {
            registry.handler::<on_sqlite>()
        } else {
            registry.handler::<serve>()
        };
        work(Pool::<Sqlite>::connect(&url).await?, handlers, lease).await
    } else if url.starts_with("postgres") {
        let handlers = if hangs {
            registry.handler::<on_postgres>()
        } else {
            registry.handler::<serve>()
        };
        work(Pool::<Postgres>::connect(&url).await?, handlers, lease).await
    } else {
        let handlers = if hangs {
            registry.handler::<on_mysql>()
        } else {
            registry.handler::<serve>()
        };
        work(Pool::<MySql>::connect(&url).await?, handlers, lease).await
    }
}
