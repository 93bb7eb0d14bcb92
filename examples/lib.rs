//! What the examples share, so that each of them shows one idea. Run one with
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

/// A SQLite database in a folder of its own, which is removed with this value.
#[derive(Debug)]
pub struct Scratch {
    /// Connections to it.
    pub pool: SqlitePool,
    folder: PathBuf,
}

/// An empty SQLite database with the options that an outbox wants.
///
/// # Errors
/// When the folder or the file cannot be created.
pub async fn sqlite() -> anyhow::Result<Scratch> {
    let folder = std::env::temp_dir().join(format!("outbox-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let options = SqliteConnectOptions::new()
        .filename(folder.join("shop.db"))
        .create_if_missing(true)
        // Readers and the one writer do not wait for each other.
        .journal_mode(SqliteJournalMode::Wal)
        // Enough with WAL: an application that crashes loses nothing.
        .synchronous(SqliteSynchronous::Normal)
        // A second writer waits for the first one instead of failing at once.
        .busy_timeout(Duration::from_secs(5));
    let pool = SqlitePool::connect_with(options).await?;
    Ok(Scratch { pool, folder })
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever tidies the temporary folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// PostgreSQL at `DATABASE_URL` or `OUTBOX_TEST_POSTGRES_URL`, in the schema `outbox_example`,
/// which is emptied first.
///
/// # Errors
/// When neither is set, or the server cannot be reached.
pub async fn postgres() -> anyhow::Result<PgPool> {
    let url = ["DATABASE_URL", "OUTBOX_TEST_POSTGRES_URL"].map(std::env::var);
    let url = url.into_iter().find_map(Result::ok).context(
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

/// Waits until the outbox has come to this; for at most ten seconds.
///
/// # Errors
/// When it has not by then, or the database fails.
pub async fn until<Db: Database>(
    outbox: &Outbox<Db>,
    so: impl Fn(&Counts) -> bool,
) -> anyhow::Result<Counts> {
    let waiting = async {
        loop {
            let counts = outbox.operations().counts(Precision::Exact).await?;
            if so(&counts) {
                return Ok(counts);
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    match timeout(Duration::from_secs(10), waiting).await {
        Ok(counts) => counts,
        Err(_) => {
            let counts = outbox.operations().counts(Precision::Exact).await?;
            anyhow::bail!("still not so after ten seconds: {counts:?}")
        }
    }
}

/// Prints a line of the story, and when it happened.
pub fn say(what: impl std::fmt::Display) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    println!("{:>4} ms  {what}", START.elapsed().as_millis());
}
