//! A worker that delivers.

use std::{fs, io::Write as _};

use anyhow::Context as _;
use outbox::{Outbox, Registry, RegistryBuilder};

use super::{
    READY,
    journal::{Journal, observe, work},
    until_stdin_closes,
};
use crate::{
    backlog::KEYS, database::Bench, ours, progress::Progress, site::CONNECTIONS, tally::Tally,
};

/// Prints each start at once.
pub(super) async fn observing<Db: Bench>(url: &str) -> anyhow::Result<()> {
    let (journal, mut entries) = Journal::new();
    let registry = Registry::builder().handler::<observe>().state(journal);
    let printing = tokio::spawn(async move {
        while let Some(entry) = entries.recv().await {
            println!("{entry}");
        }
    });
    serve::<Db>(url, registry).await?;
    printing.await?;
    Ok(())
}

/// Prints all starts at the end, because printing would slow the handlers down.
pub(super) async fn working<Db: Bench>(url: &str) -> anyhow::Result<()> {
    let (journal, mut entries) = Journal::new();
    let registry = Registry::builder().handler::<work>().state(journal);
    serve::<Db>(url, registry).await?;
    let mut out = std::io::stdout().lock();
    while let Ok(entry) = entries.try_recv() {
        writeln!(out, "{entry}")?;
    }
    Ok(())
}

/// Runs a dispatcher until the standard input is closed.
async fn serve<Db: Bench>(url: &str, registry: RegistryBuilder) -> anyhow::Result<()> {
    let pool = Db::connect(url, CONNECTIONS).await?;
    let builder = Outbox::builder(pool.clone()).registry(registry);
    let outbox = builder.config(ours::config(false)).build().await?;
    let dispatcher = outbox.start().await?;
    println!("{READY}");
    until_stdin_closes().await?;
    dispatcher.shutdown().await?;
    pool.close().await;
    Ok(())
}

/// Drains the backlog, and prints its peak memory in kilobytes and its time in milliseconds.
pub(super) async fn drain<Db: Bench>(url: &str, records: u64) -> anyhow::Result<()> {
    println!("{READY}");
    let tally = Tally::new(records, KEYS);
    let pool = Db::connect(url, CONNECTIONS).await?;
    let builder = Outbox::builder(pool.clone()).registry(ours::counting(&tally));
    let outbox = builder.config(ours::config(false)).build().await?;
    let start = std::time::Instant::now();
    let dispatcher = outbox.start().await?;
    tally.all(&Progress::new()).await?;
    dispatcher.shutdown().await?;
    let millis = start.elapsed().as_millis();
    pool.close().await;
    tally.check()?;
    println!("{} {millis}", peak()?);
    Ok(())
}

/// The peak memory of this process, in kilobytes.
fn peak() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kilobytes.context("VmHWM")?.parse()?)
}
