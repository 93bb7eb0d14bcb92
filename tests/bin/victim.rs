//! A process that is killed in the middle: it writes with its record's transaction, says so, and
//! never comes back. `victim URL`

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

async fn work<Db: Database>(
    pool: Pool<Db>,
    registry: outbox::RegistryBuilder,
) -> Result<(), Failure> {
    let mut config = Config::default();
    config.locking.lease = Some(Duration::from_secs(1));
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
    let url = std::env::args().nth(1).ok_or("victim URL")?;
    let registry = Registry::builder();
    if url.starts_with("sqlite:") {
        work(
            Pool::<Sqlite>::connect(&url).await?,
            registry.handler::<on_sqlite>(),
        )
        .await
    } else if url.starts_with("postgres") {
        work(
            Pool::<Postgres>::connect(&url).await?,
            registry.handler::<on_postgres>(),
        )
        .await
    } else {
        work(
            Pool::<MySql>::connect(&url).await?,
            registry.handler::<on_mysql>(),
        )
        .await
    }
}
