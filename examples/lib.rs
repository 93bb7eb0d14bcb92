//! Functions that the examples share. Each example shows one idea; run one with
//! `cargo run --example quickstart`.

use std::{path::PathBuf, sync::LazyLock, time::Duration};

use anyhow::Context as _;
use outbox::{
    Database, Outbox,
    operations::{Counts, Precision},
};
use sqlx::{
    Executor as _, PgPool, SqlitePool,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tokio::time::{Instant, sleep, timeout};

mod console;
mod web;

pub use console::{Console, Ended};
pub use web::{http, stop_signal};

/// A SQLite database in its own folder. Dropping this value removes the folder.
#[derive(Debug)]
pub struct Scratch {
    /// Connections to the database.
    pub pool: SqlitePool,
    folder: PathBuf,
}

/// Creates an empty SQLite database with the options that an outbox needs.
///
/// # Errors
/// The folder or the file cannot be created.
pub async fn sqlite() -> anyhow::Result<Scratch> {
    let folder = std::env::temp_dir().join(format!("outbox-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let options = SqliteConnectOptions::new()
        .filename(folder.join("shop.db"))
        .create_if_missing(true)
        // Readers and the one writer do not wait for each other.
        .journal_mode(SqliteJournalMode::Wal)
        // Safe with WAL: a crash of the application loses no commit.
        .synchronous(SqliteSynchronous::Normal)
        // A second writer waits up to 5 s for the first one instead of failing at once.
        .busy_timeout(Duration::from_secs(5));
    let pool = SqlitePool::connect_with(options).await?;
    Ok(Scratch { pool, folder })
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An error is ignored: the operating system empties its temporary folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Connects to PostgreSQL at `DATABASE_URL` or `OUTBOX_TEST_POSTGRES_URL`. It empties the schema
/// `outbox_example` and uses it.
///
/// # Errors
/// Neither variable is set, or the server cannot be reached.
pub async fn postgres() -> anyhow::Result<PgPool> {
    let variables = ["DATABASE_URL", "OUTBOX_TEST_POSTGRES_URL"].map(std::env::var);
    let url = variables.into_iter().find_map(Result::ok).context(
        "no database: set DATABASE_URL=postgres://user:password@host/database, \
         or put `scripts/with-databases` in front of the command",
    )?;
    let options: PgConnectOptions = url.parse()?;
    let pool = PgPoolOptions::new()
        .connect_with(options.options([("search_path", "outbox_example")]))
        .await?;
    let empty = "drop schema if exists outbox_example cascade; create schema outbox_example";
    pool.execute(empty).await?;
    Ok(pool)
}

/// Waits until the outbox has these counts, for at most ten seconds.
///
/// # Errors
/// The outbox does not have them after ten seconds, or the database fails.
pub async fn until<Db: Database>(
    outbox: &Outbox<Db>,
    is_reached: impl Fn(&Counts) -> bool,
) -> anyhow::Result<Counts> {
    let waiting = async {
        loop {
            let counts = outbox.operations().counts(Precision::Exact).await?;
            if is_reached(&counts) {
                return Ok(counts);
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    match timeout(Duration::from_secs(10), waiting).await {
        Ok(counts) => counts,
        Err(_) => {
            let counts = outbox.operations().counts(Precision::Exact).await?;
            anyhow::bail!("the counts after ten seconds: {counts:?}")
        }
    }
}

/// Prints a message with the milliseconds since the first one.
pub fn say(message: impl std::fmt::Display) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    println!("{:>4} ms  {message}", START.elapsed().as_millis());
}
