//! [`ClaimRequest::run`]: one claim.                                                        (I/O)
//!
//! It releases drained partitions, renews the heartbeat and the leases of this process if it is time, reads
//! the leases of all instances, and takes the partitions that this process should own.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::decision::ClaimDecision;
use crate::{
    record::Partition,
    registry::route::Router,
    store::{self, ClusterView, Database, Fence, HandlerRename, Lease, Statements},
};

/// A released partition is reserved for two seconds for instances below their share. Otherwise the
/// instance that released it would be the first to see that it is unowned.
const RESERVE_TIME: Duration = Duration::from_secs(2);

/// The input of a claim. The engine makes it.
#[derive(Debug)]
pub(crate) struct ClaimRequest {
    /// The instance, and its leases without `to_release`.
    pub(crate) fence: Arc<Fence>,
    /// The number of partitions of all instances together.
    pub(crate) partitions: u16,
    /// How long the leases last, in microseconds.
    pub(crate) lease_micros: i64,
    /// Whether to renew the heartbeat and the leases: less than `locking.refresh-threshold` remains.
    pub(crate) renews: bool,
    /// Whether it is the first claim of this process.
    pub(crate) is_first: bool,
    /// The leases of drained partitions, which are released first.
    pub(crate) to_release: Vec<Lease>,
    /// Unowned partitions that were left to instances below their share for long enough.
    pub(crate) offered: BTreeSet<Lease>,
    pub(crate) router: Arc<Router>,
}

/// The result of a claim.
#[derive(Debug, Default)]
pub(crate) struct ClaimOutcome {
    /// The leases of this process.
    pub(crate) leases: Vec<Lease>,
    /// Whether the heartbeat and the leases were renewed.
    pub(crate) is_renewed: bool,
    /// The decision of this process.
    pub(crate) decision: ClaimDecision,
    /// The last view of the cluster.
    pub(crate) view: ClusterView,
}

impl ClaimRequest {
    /// If it is dropped, some statements may be done; the next claim sees their effects.
    pub(crate) async fn run<Db: Database>(
        &self,
        connection: &mut Db::Connection,
        sql: &Statements,
    ) -> sqlx::Result<ClaimOutcome> {
        let (owner, micros) = (self.fence.owner, self.lease_micros);
        let releases = !self.to_release.is_empty();
        if releases {
            let leases = self.to_release.clone();
            let (fence, reserved) = (Fence { owner, leases }, store::as_micros(RESERVE_TIME));
            Db::release_leases(connection, sql, &fence, Some(reserved)).await?;
        }
        if self.renews {
            Db::heartbeat(connection, sql, owner, micros).await?;
        }
        let mut view = Db::cluster_view(connection, sql).await?;
        if view.leases.len() < usize::from(self.partitions) {
            Db::seed_partitions(connection, sql, self.partitions).await?;
            view = Db::cluster_view(connection, sql).await?;
        }
        let mut decision = ClaimDecision::decide(&view, owner, &self.offered);
        // The row of the instance exists before it takes a partition, and expires with its leases.
        let must_renew = !decision.take.is_empty() || !view.has_instance(owner);
        if !self.renews && must_renew {
            Db::heartbeat(connection, sql, owner, micros).await?;
        }
        for instance in &decision.expired {
            Db::reap_expired(connection, sql, *instance).await?;
        }
        if !decision.take.is_empty() {
            Db::take_partitions(connection, sql, owner, &decision.take, micros).await?;
            view = Db::cluster_view(connection, sql).await?;
        }
        // Wakes instances that are above their share now.
        if releases || self.is_first && decision.peers > 0 {
            Db::notify_peers(connection, sql).await?;
        }
        let leases = view.leases_of(owner);
        self.prepare_gained::<Db>(connection, sql, &leases).await?;
        decision.has_reserved |= releases;
        Ok(ClaimOutcome {
            leases,
            is_renewed: self.renews || must_renew,
            decision,
            view,
        })
    }

    /// Prepares gained partitions before their first record is read: deliveries with old ids of
    /// handlers get the new ids, and records that no handler of an older program took become
    /// pending.
    async fn prepare_gained<Db: Database>(
        &self,
        connection: &mut Db::Connection,
        sql: &Statements,
        owned: &[Lease],
    ) -> sqlx::Result<()> {
        const RECORDS_PER_REQUEUE: i64 = 5_000;
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
        let partitions: Vec<Partition> = fence.leases.iter().map(|lease| lease.partition).collect();
        for event in Db::unhandled_events(connection, sql, &partitions).await? {
            if self.router.handlers_of(&event).is_empty() {
                continue;
            }
            while Db::requeue_unhandled(connection, sql, &fence, &event, RECORDS_PER_REQUEUE)
                .await?
                > 0
            {}
        }
        Ok(())
    }
}
