//! Leases and instances: the rows, and the statements on them.

use serde::Serialize;
use uuid::Uuid;

use super::{
    Dialect, Statements,
    call::{execute, read},
};
use crate::record::Partition;

/// The right to work on one partition.
///
/// Only [`LeaseSql::take_partitions`] writes it, with the database's clock. The epoch grows only when
/// the partition gets another owner. An instance with an older epoch owns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Lease {
    #[serde(rename = "part")]
    pub(crate) partition: Partition,
    pub(crate) epoch: i64,
}

/// The condition of every statement with which an owner changes a record: this owner still has these
/// leases, with these epochs.
#[derive(Debug, Clone)]
pub struct Fence {
    pub(crate) owner: Uuid,
    pub(crate) leases: Vec<Lease>,
}

/// All instances, leases and pauses in one snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    pub(crate) instances: Vec<InstanceRow>,
    pub(crate) leases: Vec<LeaseRow>,
    /// The ids of paused handlers.
    pub(crate) paused: Vec<String>,
}

/// One row of the view.
#[derive(Debug)]
pub(crate) enum ClusterViewRow {
    Lease(LeaseRow),
    Instance(InstanceRow),
    Paused(String),
}

impl ClusterView {
    fn from_rows(rows: Vec<ClusterViewRow>) -> Self {
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

    /// Whether the instance has a row. A peer that saw its session end has removed it.
    pub(crate) fn has_instance(&self, id: Uuid) -> bool {
        self.instances.iter().any(|instance| instance.id == id)
    }

    /// How many partitions have no owner, or an owner whose lease has expired.
    pub(crate) fn unowned(&self) -> usize {
        let unowned = |row: &&LeaseRow| row.owner.is_none() || row.is_expired;
        self.leases.iter().filter(unowned).count()
    }
}

/// A process that runs a dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceRow {
    pub(crate) id: Uuid,
    /// Microseconds on the database's clock until the instance counts as dead.
    pub(crate) expires_in: i64,
}

impl InstanceRow {
    pub(crate) fn is_expired(&self) -> bool {
        self.expires_in <= 0
    }
}

/// A partition and its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    pub(crate) partition: Partition,
    pub(crate) epoch: i64,
    pub(crate) owner: Option<Uuid>,
    /// With an owner: the lease has expired on the database's clock. Without an owner: the partition
    /// is no longer reserved for instances below their share.
    pub(crate) is_expired: bool,
}

impl LeaseRow {
    pub(crate) fn lease(&self) -> Lease {
        let Self {
            partition, epoch, ..
        } = *self;
        Lease { partition, epoch }
    }
}

/// The statements on instances and leases.
///
/// A process writes the row of its own instance. Any peer deletes the row when the instance is dead.
/// Only [`take_partitions`](Self::take_partitions) takes a partition. The owner releases it, or the
/// statement that reaps the owner.
pub trait LeaseSql: Dialect {
    /// The number of partitions, which was chosen when the tables were made. 0 if no statement of the
    /// schema has added them.
    fn partition_count(
        connection: &mut Self::Connection,
        sql: &Statements,
    ) -> impl Future<Output = Result<u16, sqlx::Error>> + Send {
        async move {
            let counts = read::<Self, i64>(connection, sql.partition_count.call()).await?;
            let count = counts.first().copied().unwrap_or(0);
            Ok(u16::try_from(count).unwrap_or(u16::MAX))
        }
    }

    /// Adds the partitions that are missing.
    fn seed_partitions(
        connection: &mut Self::Connection,
        sql: &Statements,
        partitions: u16,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let all: Vec<Partition> = (0..partitions).map(Partition::new).collect();
            let seed = sql.seed_partitions.bind("partitions", &*all);
            execute::<Self>(connection, seed).await.map(drop)
        }
    }

    /// Sets the expiry of this instance and of its leases to `micros` microseconds from now. Takes no
    /// partition.
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

    /// Deletes the instance, so that its peers no longer leave a share to it. `release_all` also
    /// releases all of its leases. Otherwise the process keeps them until it releases them.
    fn leave(
        connection: &mut Self::Connection,
        sql: &Statements,
        owner: Uuid,
        release_all: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            execute::<Self>(connection, sql.delete_instance.bind("instance", owner)).await?;
            if release_all {
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
            Ok(ClusterView::from_rows(rows))
        }
    }

    /// Takes those of these partitions that have no owner, or whose lease has expired, for `micros`
    /// microseconds from now. Each gets its next epoch.
    fn take_partitions(
        connection: &mut Self::Connection,
        sql: &Statements,
        owner: Uuid,
        partitions: &[Partition],
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let take = sql.take_partitions.bind("owner", owner);
            let take = take.bind("micros", micros).bind("partitions", partitions);
            execute::<Self>(connection, take).await.map(drop)
        }
    }

    /// Releases those of these leases that this owner still has. For `reserved` microseconds, only
    /// instances below their share take them.
    fn release_leases(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let release = sql
                .release_leases
                .bind_fence(fence)
                .bind("reserved", reserved);
            execute::<Self>(connection, release).await.map(drop)
        }
    }

    /// Locks those of these leases that this owner still has, until the caller's transaction ends, and
    /// returns their partitions.
    fn lock_leases(
        connection: &mut Self::Connection,
        sql: &Statements,
        fence: &Fence,
    ) -> impl Future<Output = Result<Vec<Partition>, sqlx::Error>> + Send {
        async move { read::<Self, _>(connection, sql.lock_leases.bind_fence(fence)).await }
    }

    /// Deletes an instance that has expired on the database's clock, and releases its partitions.
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
