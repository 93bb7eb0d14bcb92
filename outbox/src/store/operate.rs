//! What a person on call changes.

use super::TableNames;
use crate::operations::{DeliveryStatus, RecordStatus};

/// A record in the order of ids, as far as pruning wants to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prunable {
    pub(crate) id: i64,
    pub(crate) part: u16,
    /// It was completed or discarded long enough ago, and so were all its deliveries.
    pub(crate) over: bool,
    /// It was published too late to be over, and so were most of those after it.
    pub(crate) young: bool,
}

/// The statements of operations. Each is conditional on the status that it changes, so that
/// whoever comes second changes nothing. Lists of ids are short: the caller makes batches.
///
/// Deliveries are locked before their records, as settling does it.
pub trait OperateSql: sqlx::Database {
    /// Starts a transaction that is going to write.
    #[doc(hidden)]
    const BEGIN: &'static str;

    /// The record's status.
    #[doc(hidden)]
    fn record_status(
        connection: &mut Self::Connection,
        names: &TableNames,
        record_id: i64,
    ) -> impl Future<Output = Result<Option<RecordStatus>, sqlx::Error>> + Send;

    /// Ids and statuses of the record's deliveries, of one handler or of all.
    #[doc(hidden)]
    fn deliveries_of(
        connection: &mut Self::Connection,
        names: &TableNames,
        record_id: i64,
        handler: Option<&str>,
    ) -> impl Future<Output = Result<Vec<(i64, DeliveryStatus)>, sqlx::Error>> + Send;

    /// Those of these deliveries that are failed or scheduled become due now; failed ones with
    /// all their retries. How many did.
    #[doc(hidden)]
    fn replay(
        connection: &mut Self::Connection,
        names: &TableNames,
        ids: &[i64],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Those of these records that are scheduled become due now. How many did.
    #[doc(hidden)]
    fn bring_forward(
        connection: &mut Self::Connection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Those of these deliveries that are unfinished become discarded. How many did.
    #[doc(hidden)]
    fn discard(
        connection: &mut Self::Connection,
        names: &TableNames,
        ids: &[i64],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Those of these split records that have no unfinished delivery left become discarded. In
    /// the transaction of `discard`, after it.
    #[doc(hidden)]
    fn end_records(
        connection: &mut Self::Connection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// The heads of the lanes of these deliveries become due now if they are waiting.
    #[doc(hidden)]
    fn promote(
        connection: &mut Self::Connection,
        names: &TableNames,
        ids: &[i64],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Those of these records that no handler has begun with become discarded. How many did.
    #[doc(hidden)]
    fn discard_records(
        connection: &mut Self::Connection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Nothing is given to this handler any more.
    #[doc(hidden)]
    fn pause(
        connection: &mut Self::Connection,
        names: &TableNames,
        handler: &str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Ends a pause. Whether there was one.
    #[doc(hidden)]
    fn resume(
        connection: &mut Self::Connection,
        names: &TableNames,
        handler: &str,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// The next `limit` records after this id. `micros`: how long ago is long enough.
    #[doc(hidden)]
    fn prunable(
        connection: &mut Self::Connection,
        names: &TableNames,
        after: i64,
        micros: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Prunable>, sqlx::Error>> + Send;

    /// Deletes those of these records that are finished, with their deliveries and failures. How
    /// many records. In a transaction.
    #[doc(hidden)]
    fn delete(
        connection: &mut Self::Connection,
        names: &TableNames,
        record_ids: &[i64],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;
}
