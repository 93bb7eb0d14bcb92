//! [`ClaimRequest::run`]: one claim.                                                        (I/O)
//!
//! It releases what is drained, says that this process is alive and renews its leases, looks around,
//! and takes what this process should own.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use uuid::Uuid;

use crate::runtime::ownership::decision::ClaimDecision;
use crate::{
    registry::route::Router,
    store::{ClusterView, Database, Fence, HandlerRename, Lease, Statements, micros},
};

/// A released partition is reserved for two seconds for instances below their share. Otherwise the
/// instance that released it would be the first to see that it is unowned.
const RESERVE_TIME: Duration = Duration::from_secs(2);

/// Leases expire up to 20 ms after the heartbeat of their instance: one claim writes both, the
/// leases a moment later.
const EXPIRY_SLACK: Duration = Duration::from_millis(20);

/// What a claim needs to know. The engine makes it.
#[derive(Debug)]
pub(crate) struct ClaimRequest {
    pub(crate) owner: Uuid,
    pub(crate) partitions: u16,
    /// How long the leases last, in microseconds.
    pub(crate) lease_micros: i64,
    /// Whether it is the first claim of this process.
    pub(crate) is_first: bool,
    /// What this process owns, without `to_release`.
    pub(crate) owned: Vec<Lease>,
    /// Drained, to be released first.
    pub(crate) to_release: Vec<Lease>,
    /// Unowned, and left to instances below their share for long enough.
    pub(crate) offered: BTreeSet<Lease>,
    /// Handlers whose stored id changed: the old id, then the new one.
    pub(crate) renames: Vec<(&'static str, &'static str)>,
    pub(crate) router: Arc<Router>,
}

/// What a claim brought.
#[derive(Debug, Default)]
pub(crate) struct ClaimOutcome {
    /// The leases of this process.
    pub(crate) leases: Vec<Lease>,
    /// How many partitions this process should own.
    pub(crate) share: usize,
    /// How many other instances are alive.
    pub(crate) peers: usize,
    /// How many partitions nobody owns.
    pub(crate) unowned: usize,
    /// Unowned partitions that are left to instances below their share.
    pub(crate) offered: BTreeSet<Lease>,
    /// Whether partitions are reserved for instances below their share.
    pub(crate) has_reserved: bool,
    /// How long until another instance counts as dead, unless it claims before.
    pub(crate) next_expiry: Option<Duration>,
    /// The handlers that are paused.
    pub(crate) paused: Vec<String>,
}

impl ClaimRequest {
    /// Dropped in between, a part of it is done, which the next claim finds.
    pub(crate) async fn run<Db: Database>(
        &self,
        connection: &mut Db::Connection,
        sql: &Statements,
    ) -> Result<ClaimOutcome, sqlx::Error> {
        let mut changed = false;
        if !self.to_release.is_empty() {
            let fence = Fence {
                owner: self.owner,
                leases: self.to_release.clone(),
            };
            Db::release_leases(connection, sql, &fence, Some(micros(RESERVE_TIME))).await?;
            changed = true;
        }
        Db::heartbeat(connection, sql, self.owner, self.lease_micros).await?;
        let mut view = Db::cluster_view(connection, sql).await?;
        if view.leases.len() < usize::from(self.partitions) {
            Db::seed_partitions(connection, sql, self.partitions).await?;
            view = Db::cluster_view(connection, sql).await?;
        }
        let decision = ClaimDecision::decide(&view, self.owner, &self.offered);
        for instance in &decision.expired {
            Db::reap_expired(connection, sql, *instance).await?;
        }
        if !decision.take.is_empty() {
            let take = &decision.take;
            Db::take_partitions(connection, sql, self.owner, take, self.lease_micros).await?;
            view = Db::cluster_view(connection, sql).await?;
        }
        // Instances that are above their share now have to know.
        changed |= self.is_first && decision.peers > 0;
        if changed {
            Db::notify_peers(connection, sql).await?;
        }
        let leases = leases_of(&view, self.owner);
        self.prepare_gained::<Db>(connection, sql, &leases).await?;
        Ok(ClaimOutcome {
            leases,
            share: decision.share,
            peers: decision.peers,
            unowned: view.unowned(),
            offered: decision.offer,
            has_reserved: decision.has_reserved || !self.to_release.is_empty(),
            next_expiry: decision
                .next_expiry
                .map(|left| Duration::from_micros(left.unsigned_abs()) + EXPIRY_SLACK),
            paused: view.paused,
        })
    }

    /// Before the first record of a partition is read: deliveries under old sql of handlers get
    /// the new ones, and records that no handler of an older program took are pending again.
    async fn prepare_gained<Db: Database>(
        &self,
        connection: &mut Db::Connection,
        sql: &Statements,
        leases: &[Lease],
    ) -> Result<(), sqlx::Error> {
        const REQUEUE_AT_ONCE: i64 = 5_000;
        let owned: HashSet<&Lease> = self.owned.iter().collect();
        let gained = leases.iter().filter(|lease| !owned.contains(lease));
        let fence = Fence {
            owner: self.owner,
            leases: gained.copied().collect(),
        };
        if fence.leases.is_empty() {
            return Ok(());
        }
        for (from, to) in &self.renames {
            let rename = HandlerRename { from, to };
            Db::rename_handler(connection, sql, &fence, rename).await?;
        }
        let parts: Vec<u16> = fence.leases.iter().map(|lease| lease.part).collect();
        for event in Db::unhandled_events(connection, sql, &parts).await? {
            if self.router.handlers_of(&event).is_empty() {
                continue;
            }
            while Db::requeue_unhandled(connection, sql, &fence, &event, REQUEUE_AT_ONCE).await? > 0
            {
            }
        }
        Ok(())
    }
}

fn leases_of(view: &ClusterView, owner: Uuid) -> Vec<Lease> {
    let mine = view.leases.iter().filter(|row| row.owner == Some(owner));
    mine.map(|row| Lease {
        part: row.part,
        epoch: row.epoch,
    })
    .collect()
}
