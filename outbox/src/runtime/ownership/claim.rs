//! One claim: says that this process lives, renews what it owns, gives up what it has drained and
//! takes what it should have.

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

/// What is handed over is reserved for this long to those who have too few. Who took it over from
/// would otherwise be the first to see that it is free.
const RESERVED: Duration = Duration::from_secs(2);

/// LeaseTable run out this long after their instance at the latest: one statement renews both, a moment
/// after the other.
const AFTER_EXPIRY: Duration = Duration::from_millis(20);

/// What a claim is asked with.
#[derive(Debug)]
pub(crate) struct ClaimRequest {
    pub(crate) owner: Uuid,
    pub(crate) partitions: u16,
    /// How long the leases last.
    pub(crate) micros: i64,
    /// Whether it is the first one of this process.
    pub(crate) joins: bool,
    pub(crate) held: Vec<Lease>,
    /// Drained, to be given up first.
    pub(crate) drained: Vec<Lease>,
    /// Free at the last claim, and left to others.
    pub(crate) left: BTreeSet<Lease>,
    /// Old ids of handlers, each with its present one.
    pub(crate) renames: Vec<(&'static str, &'static str)>,
    pub(crate) router: Arc<Router>,
}

/// What it came to.
#[derive(Debug, Default)]
pub(crate) struct ClaimOutcome {
    pub(crate) leases: Vec<Lease>,
    /// How many of them this process should own.
    pub(crate) share: usize,
    /// How many other instances live.
    pub(crate) peers: usize,
    /// How many partitions nobody owns.
    pub(crate) orphaned: usize,
    pub(crate) left: BTreeSet<Lease>,
    /// Whether something is reserved to those who have too few.
    pub(crate) reserved: bool,
    /// How long until another instance may be taken for dead, if it does not say before that it
    /// lives.
    pub(crate) next_expiry: Option<Duration>,
    /// The handlers that were paused.
    pub(crate) paused: Vec<String>,
}

impl ClaimRequest {
    /// On a connection of the caller's. Dropped in between, a part of it is done, which the next
    /// claim finds.
    pub(crate) async fn make<Db: Database>(
        &self,
        connection: &mut Db::Connection,
        sql: &Statements<Db>,
    ) -> Result<ClaimOutcome, sqlx::Error> {
        let mut changed = false;
        if !self.drained.is_empty() {
            let fence = Fence {
                owner: self.owner,
                leases: self.drained.clone(),
            };
            Db::release_leases(connection, sql, &fence, Some(micros(RESERVED))).await?;
            changed = true;
        }
        Db::heartbeat(connection, sql, self.owner, self.micros).await?;
        let mut survey = Db::cluster_view(connection, sql).await?;
        if survey.leases.len() < usize::from(self.partitions) {
            Db::seed_partitions(connection, sql, self.partitions).await?;
            survey = Db::cluster_view(connection, sql).await?;
        }
        let plan = ClaimDecision::new(&survey, self.owner, &self.left);
        for instance in &plan.expired {
            Db::reap_expired(connection, sql, *instance).await?;
        }
        if !plan.take.is_empty() {
            Db::take_partitions(connection, sql, self.owner, &plan.take, self.micros).await?;
            survey = Db::cluster_view(connection, sql).await?;
        }
        // Those who have more than their share now should know.
        changed |= self.joins && plan.peers > 0;
        if changed {
            Db::notify_peers(connection, sql).await?;
        }
        let leases = leases_of(&survey, self.owner);
        self.adopt::<Db>(connection, sql, &leases).await?;
        Ok(ClaimOutcome {
            leases,
            share: plan.share,
            peers: plan.peers,
            orphaned: survey.orphaned(),
            left: plan.left,
            reserved: plan.reserved || !self.drained.is_empty(),
            next_expiry: plan
                .next_expiry
                .map(|left| Duration::from_micros(left.unsigned_abs()) + AFTER_EXPIRY),
            paused: survey.paused,
        })
    }

    /// Before the first record of a partition is read: what an older version of the program left
    /// under old names, or could not handle, becomes this one's.
    async fn adopt<Db: Database>(
        &self,
        connection: &mut Db::Connection,
        sql: &Statements<Db>,
        leases: &[Lease],
    ) -> Result<(), sqlx::Error> {
        const AT_ONCE: i64 = 5_000;
        let held: HashSet<&Lease> = self.held.iter().collect();
        let gained = leases.iter().filter(|lease| !held.contains(lease));
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
            if self.router.route(&event).is_empty() {
                continue;
            }
            while Db::requeue_unhandled(connection, sql, &fence, &event, AT_ONCE).await? > 0 {}
        }
        Ok(())
    }
}

fn leases_of(survey: &ClusterView, owner: Uuid) -> Vec<Lease> {
    let mine = survey.leases.iter().filter(|row| row.owner == Some(owner));
    mine.map(|row| Lease {
        part: row.part,
        epoch: row.epoch,
    })
    .collect()
}
