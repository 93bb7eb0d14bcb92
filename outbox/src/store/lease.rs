//! Who owns a partition: the statements on the lease table.

use uuid::Uuid;

use super::Names;

/// The right to work on one partition.
///
/// Written by [`LeaseSql::claim`] only, in the database's time. The epoch grows whenever the
/// partition changes hands, and never otherwise: whoever holds an older one owns nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
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

/// The statements on leases.
pub trait LeaseSql: sqlx::Database {
    /// Renews the leases of this owner and takes every one that is free or has expired, for
    /// `micros` microseconds from now. Returns all that are this owner's now.
    #[doc(hidden)]
    fn claim(
        connection: &mut Self::Connection,
        names: &Names,
        owner: Uuid,
        partitions: u16,
        micros: i64,
    ) -> impl Future<Output = Result<Vec<Lease>, sqlx::Error>> + Send;

    /// Renews these leases, as far as they are still this owner's, and takes no others.
    #[doc(hidden)]
    fn renew(
        connection: &mut Self::Connection,
        names: &Names,
        fence: &Fence,
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Gives these leases up, for others to take at once.
    #[doc(hidden)]
    fn release(
        connection: &mut Self::Connection,
        names: &Names,
        fence: &Fence,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}
