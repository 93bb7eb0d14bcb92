//! Leases and instances: the rows, and the statements on them.

use serde::Serialize;
use uuid::Uuid;

use super::{
    Dialect, Statements,
    call::{execute, read},
};

/// The right to work on one partition.
///
/// Only [`LeaseSql::take_partitions`] writes it, by the database's clock. The epoch grows whenever the
/// partition changes hands, and never otherwise. An instance with an older epoch owns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Lease {
    pub(crate) part: u16,
    pub(crate) epoch: i64,
}

/// The condition of every statement by which an owner changes a record: these leases, with these
/// epochs, are still this owner's.
#[derive(Debug, Clone)]
pub struct Fence {
    pub(crate) owner: Uuid,
    pub(crate) leases: Vec<Lease>,
}

/// All instances, leases and pauses, as one statement saw them at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    pub(crate) instances: Vec<Instance>,
    pub(crate) leases: Vec<LeaseRow>,
    /// The ids of paused handlers.
    pub(crate) paused: Vec<String>,
}

/// One row of the view.
#[derive(Debug)]
pub(crate) enum ClusterViewRow {
    Lease(LeaseRow),
    Instance(Instance),
    Paused(String),
}

impl ClusterView {
    pub(crate) fn of(rows: Vec<ClusterViewRow>) -> Self {
        let mut view = Self::default();
        for row in rows {
            match row {
                ClusterViewRow::Lease(lease) => view.leases.push(lease),
                ClusterViewRow::Instance(instance) => view.instances.push(instance),
                ClusterViewRow::Paused(handler) => view.paused.push(handler),
            }
        }
        view
    }

    pub(crate) fn leases_of(&self, owner: Uuid) -> Vec<Lease> {
        let owned = self.leases.iter().filter(|row| row.owner == Some(owner));
        owned.map(LeaseRow::lease).collect()
    }

    /// How many partitions have no owner, or an owner whose lease has expired.
    pub(crate) fn unowned(&self) -> usize {
        let unowned = |row: &&LeaseRow| row.owner.is_none() || row.expired;
        self.leases.iter().filter(unowned).count()
    }
}

/// A process that runs a dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: Uuid,
    /// Microseconds, by the database's clock, until the instance counts as dead.
    pub(crate) expires_in: i64,
}

impl Instance {
    pub(crate) fn expired(&self) -> bool {
        self.expires_in <= 0
    }
}

/// A partition and its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    pub(crate) part: u16,
    pub(crate) epoch: i64,
    pub(crate) owner: Option<Uuid>,
    /// With an owner: the lease has expired by the database's clock. Without one: the partition is no
    /// longer reserved for instances below their share.
    pub(crate) expired: bool,
}

impl LeaseRow {
    pub(crate) fn lease(&self) -> Lease {
        let Self { part, epoch, .. } = *self;
        Lease { part, epoch }
    }
}

/// The statements on instances and leases.
///
/// A process writes the row of its own instance. Any peer deletes the row when the instance is dead.
/// Only [`take_partitions`](Self::take_partitions) takes a partition. Its owner releases it, or the
/// statement that reaps the owner does.
pub trait LeaseSql: Dialect {
    /// Adds the partitions that are missing.
    fn seed_partitions(
        connection: &mut Self::Connection,
        sql: &Statements,
        partitions: u16,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let all: Vec<u16> = (0..partitions).collect();
            let seed = sql.seed_partitions.bind("partitions", &*all);
            execute::<Self>(connection, seed).await.map(drop)
        }
    }

    /// Extends the life of this instance to `micros` microseconds from now, and renews its leases.
    /// Takes no partition.
    fn heartbeat(
        connection: &mut Self::Connection,
        sql: &Statements,
        owner: Uuid,
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let heartbeat = sql.heartbeat.bind("owner", owner).bind("micros", micros);
            execute::<Self>(connection, heartbeat).await.map(drop)
        }
    }

    /// Renews the leases of an instance that is leaving and has no share.
    fn renew(
        connection: &mut Self::Connection,
        sql: &Statements,
        owner: Uuid,
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let renew = sql.renew.bind("owner", owner).bind("micros", micros);
            execute::<Self>(connection, renew).await.map(drop)
        }
    }

    /// Ends the instance's share, so that its peers take what it releases. `frees`: releases all of
    /// its leases too. Otherwise it keeps the others until it releases them.
    fn leave(
        connection: &mut Self::Connection,
        sql: &Statements,
        owner: Uuid,
        frees: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            execute::<Self>(connection, sql.delete_instance.bind("instance", owner)).await?;
            if frees {
                execute::<Self>(connection, sql.free_leases.bind("instance", owner)).await?;
            }
            Ok(())
        }
    }

    /// Reads all instances, leases and pauses in one statement.
    fn cluster_view(
        connection: &mut Self::Connection,
        sql: &Statements,
    ) -> impl Future<Output = Result<ClusterView, sqlx::Error>> + Send {
        async move {
            let rows = read::<Self, _>(connection, sql.cluster_view.call()).await?;
            Ok(ClusterView::of(rows))
        }
    }

    /// Takes those of these partitions that have no owner, or whose lease has expired, for `micros`
    /// microseconds from now. Each gets its next epoch.
    fn take_partitions(
        connection: &mut Self::Connection,
        sql: &Statements,
        owner: Uuid,
        partitions: &[u16],
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let take = sql.take_partitions.bind("owner", owner);
            let take = take.bind("micros", micros).bind("partitions", partitions);
            execute::<Self>(connection, take).await.map(drop)
        }
    }

    /// Releases these leases, as far as they are still this owner's. `reserved`: only
    /// instances below their share may take them during these microseconds.
    fn release_leases(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let release = sql.release_leases.fenced(fence).bind("reserved", reserved);
            execute::<Self>(connection, release).await.map(drop)
        }
    }

    /// Locks those of these leases that are still this owner's, until the caller's transaction ends,
    /// and returns their partitions.
    fn lock_leases(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
    ) -> impl Future<Output = Result<Vec<u16>, sqlx::Error>> + Send {
        async move { read::<Self, _>(connection, sql.lock_leases.fenced(fence)).await }
    }

    /// Deletes an instance that counts as dead by the database's clock, and frees its partitions.
    fn reap_expired(
        connection: &mut Self::Connection,
        sql: &Statements,
        instance: Uuid,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let reap = sql.reap_expired.bind("instance", instance);
            execute::<Self>(connection, reap).await.map(drop)
        }
    }
}
