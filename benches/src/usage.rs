//! The costs of a run on the server: bytes of its log, and commits.

use serde::Serialize;

use crate::{database::Bench, site::Site};

/// The server's counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) log_bytes: i64,
    pub(crate) commits: i64,
}

/// The costs per record.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Usage {
    pub(crate) log_bytes: f64,
    pub(crate) commits: f64,
}

/// The counters as they were before a run.
#[derive(Debug)]
pub(crate) struct Meter(Option<Reading>);

impl Meter {
    pub(crate) async fn start<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Self> {
        Ok(Self(Db::reading(&site.pool).await?))
    }

    /// The costs per record. The connections of the run must be closed before.
    pub(crate) async fn stop<Db: Bench>(
        self,
        site: &Site<Db>,
        records: u64,
    ) -> anyhow::Result<Option<Usage>> {
        let (Some(before), Some(after)) = (self.0, Db::reading(&site.pool).await?) else {
            return Ok(None);
        };
        let each = |before: i64, after: i64| (after - before) as f64 / records.max(1) as f64;
        Ok(Some(Usage {
            log_bytes: each(before.log_bytes, after.log_bytes),
            commits: each(before.commits, after.commits),
        }))
    }
}
