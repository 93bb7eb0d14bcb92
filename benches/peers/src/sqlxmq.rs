//! sqlxmq: fetches in batches and completes jobs one by one; jobs with equal `channel_args` are in
//! order.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sqlx_08::postgres::PgPoolOptions;
use sqlxmq::{CurrentJob, JobBuilder, JobRunnerOptions};

use crate::case::{Case, Mode, Outcome, Peer};

pub(crate) const PEER: Peer = Peer {
    name: "sqlxmq",
    package: "sqlxmq",
    language: "rust",
    modes: Mode::BOTH,
    run: |case| Box::pin(run(case)),
};

/// sqlxmq fetches up to `MOST` jobs when fewer than `LEAST` are running.
const LEAST: usize = 100;
const MOST: usize = 200;
/// One row belongs to the library itself.
const OPEN: &str = "select count(*) - 1 from mq_msgs";

async fn run(case: Case) -> Result<Outcome> {
    let pool = PgPoolOptions::new()
        .max_connections(20)
        .connect(&case.url)
        .await?;
    sqlx_08::raw_sql(&migrations()?).execute(&pool).await?;
    store(&pool, &case).await?;

    let tally = case.tally.clone();
    let mut runner = JobRunnerOptions::new(&pool, move |mut job: CurrentJob| {
        let tally = tally.clone();
        tokio::spawn(async move {
            if let Ok(Some(payload)) = job.json::<Value>() {
                tally.handle_value(&payload);
            }
            if let Err(error) = job.complete().await {
                eprintln!("sqlxmq: {error}");
            }
        });
    });
    runner.set_concurrency(LEAST, MOST).set_keep_alive(false);
    let clock = case.start().await?;
    let mut running = runner.run().await?;
    let outcome = clock
        .stop(
            OPEN,
            format!("concurrency {LEAST} to {MOST}, 20 connections, no keep-alive"),
        )
        .await;
    running.stop().await;
    outcome
}

/// The migrations of the measured version, from the sources that cargo has downloaded.
fn migrations() -> Result<String> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--manifest-path", manifest])
        .output()?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .find(|package| package["name"] == "sqlxmq")
        .and_then(|package| package["manifest_path"].as_str())
        .context("sqlxmq is not among cargo's packages")?;
    let folder = Path::new(manifest).with_file_name("migrations");
    let mut files = fs::read_dir(folder)?
        .map(|file| Ok(file?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(".up.sql"));
    files.sort();
    let texts = files.iter().map(|file| Ok(fs::read_to_string(file)?));
    Ok(texts.collect::<Result<Vec<String>>>()?.join("\n"))
}

async fn store(pool: &sqlx_08::PgPool, case: &Case) -> Result<()> {
    for batch in case.batches() {
        let mut transaction = pool.begin().await?;
        for n in batch {
            let key = format!("key-{}", n % case.keys);
            let mut job = JobBuilder::new("noop");
            job.set_json(&json!({ "n": n }))?;
            if case.is_ordered() {
                job.set_channel_args(&key).set_ordered(true);
            }
            job.spawn(&mut *transaction).await?;
        }
        transaction.commit().await?;
    }
    Ok(())
}
