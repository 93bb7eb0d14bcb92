//! One peer in one mode: the jobs of a peer, and its result.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sqlx::{Connection as _, PgConnection};

use crate::database::Database;
use crate::tally::Tally;

/// A worker that handles no job for this time has lost one.
const MAX_SILENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    Unordered,
    Ordered,
}

impl Mode {
    pub(crate) const BOTH: &[Self] = &[Self::Unordered, Self::Ordered];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unordered => "unordered",
            Self::Ordered => "ordered",
        }
    }
}

type Running = Pin<Box<dyn Future<Output = Result<Outcome>>>>;

#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// The name of the package in its lock file.
    pub(crate) package: &'static str,
    pub(crate) language: &'static str,
    pub(crate) modes: &'static [Mode],
    pub(crate) run: fn(Case) -> Running,
}

pub(crate) struct Outcome {
    pub(crate) took: Duration,
    pub(crate) again: usize,
    pub(crate) note: String,
}

pub(crate) struct Case {
    pub(crate) url: String,
    pub(crate) mode: Mode,
    pub(crate) records: usize,
    pub(crate) keys: usize,
    pub(crate) tally: Arc<Tally>,
}

impl Case {
    pub(crate) fn new(database: &Database, mode: Mode, records: usize) -> Self {
        // Each key has five jobs: job n has the key n % keys.
        let keys = records.div_ceil(5);
        let ordered = if mode == Mode::Ordered { keys } else { 0 };
        let tally = Arc::new(Tally::new(records, ordered));
        Self {
            url: database.url.clone(),
            mode,
            records,
            keys,
            tally,
        }
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.mode == Mode::Ordered
    }

    /// The jobs in the order of storing, one call or transaction per range. No range has a key twice,
    /// because many libraries do not keep the order of jobs that were stored at once.
    pub(crate) fn batches(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (records, keys) = (self.records, self.keys);
        (0..records)
            .step_by(keys)
            .map(move |start| start..records.min(start + keys))
    }

    /// Call it when the backlog is stored and the worker has not started.
    pub(crate) async fn start(&self) -> Result<Clock<'_>> {
        let mut connection = PgConnection::connect(&self.url).await?;
        sqlx::raw_sql("vacuum analyze")
            .execute(&mut connection)
            .await?;
        sqlx::raw_sql("checkpoint").execute(&mut connection).await?;
        Ok(Clock {
            case: self,
            connection,
            started: Instant::now(),
        })
    }
}

pub(crate) struct Clock<'a> {
    case: &'a Case,
    connection: PgConnection,
    started: Instant,
}

impl Clock<'_> {
    /// Waits until every job is handled and `open`, a query for one number, returns 0.
    pub(crate) async fn stop(
        mut self,
        open: &'static str,
        note: impl Into<String>,
    ) -> Result<Outcome> {
        let tally = &self.case.tally;
        let mut progress = (0, Instant::now());
        while !tally.is_complete() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if tally.distinct() > progress.0 {
                progress = (tally.distinct(), Instant::now());
            } else if progress.1.elapsed() > MAX_SILENCE {
                tally
                    .check()
                    .context("the worker handled no job for 30 s")?;
            }
        }
        let handled = Instant::now();
        loop {
            let left: i64 = sqlx::query_scalar(open)
                .fetch_one(&mut self.connection)
                .await?;
            if left == 0 {
                break;
            }
            if handled.elapsed() > MAX_SILENCE {
                bail!("{left} jobs were handled and never completed");
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = self.started.elapsed();
        Ok(Outcome {
            took,
            again: tally.check()?,
            note: note.into(),
        })
    }
}
