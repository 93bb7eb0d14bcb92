//! The floor: a hand-written serial loop over the same table, with the same durability and the same
//! driver. It decodes the same columns and does no other work: no keys, no leases, no second
//! process. Its rate is the practical limit.

mod mysql;
mod postgres;
mod sqlite;

use std::time::{Duration, Instant};

use anyhow::ensure;
use sqlx::Connection as _;
use uuid::Uuid;

use crate::{database::Bench, rounds::Measured, site::Site, usage::Meter};

/// The number of records that one read and one acknowledgement handle.
pub(crate) const PAGE: usize = 1_000;

/// A record as the loop reads it.
#[derive(Debug)]
#[expect(dead_code, reason = "it is decoded, as a handler would need it")]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) event_id: Uuid,
    pub(crate) event: String,
    pub(crate) version: i64,
    pub(crate) key: String,
    pub(crate) payload: String,
    pub(crate) headers: Option<String>,
    /// Microseconds.
    pub(crate) created_at: i64,
}

/// The two statements of the loop.
pub(crate) trait Floor: sqlx::Database {
    /// A connection that acknowledges as the library does.
    fn floor_connection(
        url: &str,
    ) -> impl Future<Output = Result<Self::Connection, sqlx::Error>> + Send;

    /// The pending records after this id, at most [`PAGE`] of them.
    fn page(
        connection: &mut Self::Connection,
        after: i64,
    ) -> impl Future<Output = Result<Vec<Row>, sqlx::Error>> + Send;

    /// Deletes these records, or marks them as completed.
    fn acknowledge(
        connection: &mut Self::Connection,
        ids: &[i64],
        keep: bool,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;
}

/// Drains the backlog. Measures from the first read to the last acknowledgement.
pub(crate) async fn drain<Db: Bench>(
    site: &Site<Db>,
    records: u64,
    keep: bool,
) -> anyhow::Result<Measured> {
    let meter = Meter::start(site).await?;
    let mut connection = Db::floor_connection(&site.url).await?;
    let (time, drained) = serial_loop::<Db>(&mut connection, keep).await?;
    connection.close().await?;
    let usage = meter.stop(site, records).await?;
    ensure!(
        drained == records,
        "the floor drained {drained} of {records}"
    );
    site.ensure_nothing_left().await?;
    Ok(Measured {
        records,
        time,
        usage,
    })
}

async fn serial_loop<Db: Bench>(
    connection: &mut Db::Connection,
    keep: bool,
) -> anyhow::Result<(Duration, u64)> {
    let start = Instant::now();
    let (mut watermark, mut drained) = (0, 0);
    loop {
        let rows = std::hint::black_box(Db::page(connection, watermark).await?);
        let Some(last) = rows.last() else {
            return Ok((start.elapsed(), drained));
        };
        watermark = last.id;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        drained += Db::acknowledge(connection, &ids, keep).await?;
    }
}
