//! Drains a backlog with the library.

use std::time::Instant;

use outbox::{Config, Registry, RegistryBuilder, config::Retention};

use crate::{
    database::Bench,
    event,
    rounds::Measured,
    site::{CONNECTIONS, Site},
    tally::Tally,
    usage::Meter,
};

/// The default settings. Completed records are deleted unless `keep` is set.
pub(crate) fn config(keep: bool) -> Config {
    let mut config = Config::default();
    if !keep {
        config.processing.retention = Retention::Delete;
    }
    config
}

/// The handler that counts.
pub(crate) fn counting(tally: &Tally) -> RegistryBuilder {
    Registry::builder()
        .handler::<event::count>()
        .state(tally.clone())
}

/// Measures from the start of the dispatcher to the end of its shutdown, which writes the results of
/// all handled records.
pub(crate) async fn drain<Db: Bench>(
    site: &Site<Db>,
    records: u64,
    keys: u64,
    keep: bool,
) -> anyhow::Result<Measured> {
    let tally = Tally::new(records, keys);
    drain_with(site, counting(&tally), &tally, records, keep).await
}

/// Drains a backlog with other handlers.
pub(crate) async fn drain_with<Db: Bench>(
    site: &Site<Db>,
    registry: RegistryBuilder,
    tally: &Tally,
    records: u64,
    keep: bool,
) -> anyhow::Result<Measured> {
    let meter = Meter::start(site).await?;
    let (outbox, pool) = site.outbox(registry, config(keep), CONNECTIONS).await?;
    let start = Instant::now();
    let dispatcher = outbox.start().await?;
    tally.all(&site.progress).await?;
    dispatcher.shutdown().await?;
    let time = start.elapsed();
    pool.close().await;
    let usage = meter.stop(site, records).await?;
    tally.check()?;
    site.ensure_nothing_left().await?;
    Ok(Measured {
        records,
        time,
        usage,
    })
}

/// Measures the time until `records` more records of a backlog are handled. The dispatcher still
/// finishes the records that run then.
pub(crate) async fn first<Db: Bench>(
    site: &Site<Db>,
    tally: &Tally,
    records: u64,
) -> anyhow::Result<Measured> {
    let before = tally.count();
    let meter = Meter::start(site).await?;
    let registry = counting(tally);
    let (outbox, pool) = site.outbox(registry, config(false), CONNECTIONS).await?;
    let start = Instant::now();
    let dispatcher = outbox.start().await?;
    tally.some(before + records, &site.progress).await?;
    let time = start.elapsed();
    dispatcher.shutdown().await?;
    pool.close().await;
    let usage = meter.stop(site, tally.count() - before).await?;
    Ok(Measured {
        records,
        time,
        usage,
    })
}
