//! [`Reader`]: makes one claim or one fetch at a time, on the reading connection.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::{FetchPlan, Fetched, Fetcher};
use crate::{
    outbox::error::Operation,
    runtime::{
        backoff::DatabaseBackoff,
        engine::Engine,
        ownership::{ClaimOutcome, ClaimRequest},
        single_task::{SingleTask, TaskPanicked},
    },
    store::{Database, Lease},
};

/// If memory has been crowded for 250 ms, records that wait for a slow handler are evicted: one
/// slow handler must not use the memory of all others.
const EVICT_AFTER: Duration = Duration::from_millis(250);

/// Makes one claim or one fetch at a time on the reading connection, so the two never overlap.
/// While the dispatcher shuts down, it also renews and releases leases.
pub(crate) struct Reader<Db: Database> {
    task: SingleTask<Fetcher<Db>, ReadAnswer>,
    backoff: DatabaseBackoff,
    /// Since when there has been no room for pending records.
    crowded_since: Option<Instant>,
}

/// The database's answer, with the request.
pub(crate) enum ReadAnswer {
    Claimed(Result<ClaimOutcome, sqlx::Error>),
    Fetched(Box<FetchPlan>, Result<Fetched, sqlx::Error>),
    /// All leases were renewed by a statement that was sent at this time.
    Renewed(Instant, Result<(), sqlx::Error>),
    Left(Release, Result<(), sqlx::Error>),
}

/// The leases that an instance releases when it leaves the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Release {
    Only(Vec<Lease>),
    /// All leases; the row of the instance is deleted too.
    Everything,
}

impl<Db: Database> Reader<Db> {
    pub(crate) fn new(fetcher: Fetcher<Db>) -> Self {
        Self {
            task: SingleTask::new(fetcher),
            backoff: DatabaseBackoff::default(),
            crowded_since: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.task.is_idle()
    }

    pub(crate) fn start_claim(&mut self, request: ClaimRequest) {
        self.task.start(async move |mut fetcher| {
            let outcome = fetcher.claim(&request).await;
            (fetcher, ReadAnswer::Claimed(outcome))
        });
    }

    pub(crate) fn start_fetch(&mut self, plan: FetchPlan) {
        self.task.start(async move |mut fetcher| {
            let fetched = fetcher.fetch(&plan).await;
            (fetcher, ReadAnswer::Fetched(Box::new(plan), fetched))
        });
    }

    pub(crate) fn start_renewing(&mut self, owner: Uuid, lease_micros: i64) {
        let sent_at = Instant::now();
        self.task.start(async move |mut fetcher| {
            let renewed = fetcher.renew(owner, lease_micros).await;
            (fetcher, ReadAnswer::Renewed(sent_at, renewed))
        });
    }

    pub(crate) fn start_leaving(&mut self, owner: Uuid, release: Release) {
        self.task.start(async move |mut fetcher| {
            let left = fetcher.leave(owner, &release).await;
            (fetcher, ReadAnswer::Left(release, left))
        });
    }

    /// Waits for the answer. Never returns while idle. Dropping it loses nothing.
    pub(crate) async fn finished(&mut self) -> Result<ReadAnswer, TaskPanicked> {
        self.task.finished().await
    }

    /// Returns how long to wait before the next statement.
    pub(crate) fn failed(&mut self, operation: Operation, error: &sqlx::Error) -> Duration {
        self.backoff.failed(operation, error)
    }

    pub(crate) fn recovered(&mut self) {
        self.backoff.recovered();
    }

    /// Aborts the task, if one runs, and continues with another connection.
    pub(crate) fn replace(&mut self, fetcher: Fetcher<Db>) {
        self.task.replace(fetcher);
    }

    pub(crate) fn evict_if_crowded(&mut self, now: Instant, engine: &mut Engine) {
        if !engine.is_crowded() {
            self.crowded_since = None;
            return;
        }
        let since = *self.crowded_since.get_or_insert(now);
        if now.duration_since(since) >= EVICT_AFTER {
            engine.evict();
            self.crowded_since = Some(now);
        }
    }

    /// When to check for room again.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.crowded_since.map(|since| since + EVICT_AFTER)
    }
}
