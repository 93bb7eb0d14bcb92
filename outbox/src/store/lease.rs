//! Who owns a partition: the statements on the lease table.

use uuid::Uuid;

use super::StatementSql;

/// The right to work on one partition.
///
/// Written by [`LeaseSql::take_partitions`] only, in the database's time. The epoch grows whenever the
/// partition changes hands, and never otherwise: whoever holds an older one owns nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lease {
    pub(crate) part: u16,
    pub(crate) epoch: i64,
}

/// What every statement that changes a record is conditional on: that these leases are still
/// this owner's.
#[derive(Debug, Clone)]
pub struct Fence {
    pub(crate) owner: Uuid,
    pub(crate) leases: Vec<Lease>,
}

impl Fence {
    /// As two columns, for databases with array parameters.
    #[cfg(feature = "postgres")]
    pub(crate) fn columns(&self) -> (Vec<i16>, Vec<i64>) {
        let of = |lease: &Lease| (lease.part.cast_signed(), lease.epoch);
        self.leases.iter().map(of).unzip()
    }

    /// As JSON, `[[part, epoch], ..]`, for databases without array parameters.
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(crate) fn json(&self) -> String {
        let pairs: Vec<String> = self
            .leases
            .iter()
            .map(|lease| format!("[{},{}]", lease.part, lease.epoch))
            .collect();
        format!("[{}]", pairs.join(","))
    }
}

/// Who is there, and who owns what, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    pub(crate) instances: Vec<Instance>,
    pub(crate) leases: Vec<LeaseRow>,
    /// Handlers that were paused.
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

    /// How many partitions nobody owns, or an owner whose time is up.
    pub(crate) fn orphaned(&self) -> usize {
        let orphaned = |row: &&LeaseRow| row.owner.is_none() || row.expired;
        self.leases.iter().filter(orphaned).count()
    }
}

/// A process that runs a dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: Uuid,
    /// Microseconds, by the database's clock, until it has not said for too long that it lives.
    pub(crate) left: i64,
}

impl Instance {
    pub(crate) fn expired(&self) -> bool {
        self.left <= 0
    }
}

/// A partition and its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    pub(crate) part: u16,
    pub(crate) epoch: i64,
    pub(crate) owner: Option<Uuid>,
    /// By the database's clock the owner's time is up, or, without an owner, the time for which
    /// the partition is reserved to those who have too few.
    pub(crate) expired: bool,
}

/// The statements on instances and leases.
///
/// An instance's row is written by its own process; any other deletes it when the instance is
/// dead. A partition is taken by [`take`](Self::take_partitions) only, and given up by its owner, or in the
/// statement that buries its owner.
pub trait LeaseSql: StatementSql {
    /// Adds the partitions that are missing.
    fn seed_partitions(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        partitions: u16,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Says that this instance lives, for `micros` microseconds from now, and renews its leases.
    /// Takes none.
    fn heartbeat(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        owner: Uuid,
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Renews the leases of an instance that is leaving, and so has no share any more.
    fn renew(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        owner: Uuid,
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// It is leaving: the others share what it gives up, and it still owns the rest, or nothing if
    /// `frees`.
    fn leave(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        owner: Uuid,
        frees: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Who is there, and who owns what.
    fn cluster_view(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
    ) -> impl Future<Output = Result<ClusterView, sqlx::Error>> + Send;

    /// Takes those of these partitions that nobody owns, or whose owner's time is up, for `micros`
    /// microseconds from now, each with its next epoch.
    fn take_partitions(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        owner: Uuid,
        parts: &[u16],
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Gives these leases up, as far as they are still this owner's: at once for anyone, or for
    /// `reserved` microseconds to those who have too few.
    fn release_leases(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Those of these leases that are still this owner's, and stay so until the transaction of the
    /// caller ends.
    fn lock_leases(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        fence: &Fence,
    ) -> impl Future<Output = Result<Vec<u16>, sqlx::Error>> + Send;

    /// Deletes an instance whose time is up, and frees what it owned.
    fn reap_expired(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        instance: Uuid,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}
