//! [`ClaimRequest::run`]: one claim.                                                        (I/O)
//!
//! It releases what is drained, says that this process is alive and renews its leases, looks around,
//! and takes what this process should own.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::decision::ClaimDecision;
use crate::{
    registry::route::Router,
    store::{self, ClusterView, Database, Fence, HandlerRename, Lease, Statements},
};

/// A released partition is reserved for two seconds for instances below their share. Otherwise the
/// instance that released it would be the first to see that it is unowned.
const RESERVE_TIME: Duration = Duration::from_secs(2);

/// What a claim needs to know. The engine makes it.
#[derive(Debug)]
pub(crate) struct ClaimRequest {
    /// The instance, and what it owns without `to_release`.
    pub(crate) fence: Arc<Fence>,
    /// How many partitions there are in all.
    pub(crate) partitions: u16,
    /// How long the leases last, in microseconds.
    pub(crate) lease_micros: i64,
    /// Whether it is the first claim of this process.
    pub(crate) is_first: bool,
    /// Drained, to be released first.
    pub(crate) to_release: Vec<Lease>,
    /// Unowned, and left to instances below their share for long enough.
    pub(crate) offered: BTreeSet<Lease>,
    pub(crate) router: Arc<Router>,
}

/// What a claim brought.
#[derive(Debug, Default)]
pub(crate) struct ClaimOutcome {
    /// The leases of this process.
    pub(crate) leases: Vec<Lease>,
    /// What this process made of what it saw.
    pub(crate) decision: ClaimDecision,
    /// What it saw last.
    pub(crate) view: ClusterView,
}

impl ClaimRequest {
    /// Dropped in between, a part of it is done, which the next claim finds.
    pub(crate) async fn run<Db: Database>(
        &self,
        connection: &mut Db::Connection,
        sql: &Statements,
    ) -> sqlx::Result<ClaimOutcome> {
        let (owner, micros) = (self.fence.owner, self.lease_micros);
        let releases = !self.to_release.is_empty();
        if releases {
            let leases = self.to_release.clone();
            let (fence, reserved) = (Fence { owner, leases }, store::micros(RESERVE_TIME));
            Db::release_leases(connection, sql, &fence, Some(reserved)).await?;
        }
        Db::heartbeat(connection, sql, owner, micros).await?;
        let mut view = Db::cluster_view(connection, sql).await?;
        if view.leases.len() < usize::from(self.partitions) {
            Db::seed_partitions(connection, sql, self.partitions).await?;
            view = Db::cluster_view(connection, sql).await?;
        }
        let mut decision = ClaimDecision::decide(&view, owner, &self.offered);
        for instance in &decision.expired {
            Db::reap_expired(connection, sql, *instance).await?;
        }
        if !decision.take.is_empty() {
            Db::take_partitions(connection, sql, owner, &decision.take, micros).await?;
            view = Db::cluster_view(connection, sql).await?;
        }
        // Instances that are above their share now have to know.
        if releases || self.is_first && decision.peers > 0 {
            Db::notify_peers(connection, sql).await?;
        }
        let leases = view.leases_of(owner);
        self.prepare_gained::<Db>(connection, sql, &leases).await?;
        decision.has_reserved |= releases;
        Ok(ClaimOutcome {
            leases,
            decision,
            view,
        })
    }

    /// Before the first record of a partition is read: deliveries under old ids of handlers get
    /// the new ones, and records that no handler of an older program took are pending again.
    async fn prepare_gained<Db: Database>(
        &self,
        connection: &mut Db::Connection,
        sql: &Statements,
        owned: &[Lease],
    ) -> sqlx::Result<()> {
        const REQUEUE_AT_ONCE: i64 = 5_000;
        let before = &self.fence.leases;
        let gained = owned.iter().filter(|lease| !before.contains(lease));
        let (owner, leases) = (self.fence.owner, gained.copied().collect());
        let fence = Fence { owner, leases };
        if fence.leases.is_empty() {
            return Ok(());
        }
        for (from, to) in self.router.renames() {
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
