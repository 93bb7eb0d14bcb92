//! [`Operations`]: what a person on call looks at and changes.

use std::fmt;

use sqlx::Pool;

use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    runtime::signals::{Signal, WakeSignals},
    store::{Database, Operator, TableNames},
};

/// What a person on call looks at and changes; see [`Outbox::operations`](crate::outbox::Outbox::operations),
/// and [`Tables`](super::Tables) for programs without an outbox of their own.
///
/// ```
/// # use outbox::{Outbox, OutboxEvent, Registry};
/// use outbox::operations::{Change, DeliveryStatus, Filter, Paging, Precision};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created", key = order_id)]
/// # struct OrderCreated { order_id: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use sqlx::sqlite::SqlitePoolOptions;
/// # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// # let outbox = Outbox::builder(pool.clone()).registry(Registry::builder().allow_empty()).build().await?;
/// # let mut tx = pool.begin().await?;
/// # outbox.publish(&mut tx, &OrderCreated { order_id: 1 }).await?;
/// # tx.commit().await?;
/// let operations = outbox.operations();
///
/// let counts = operations.counts(Precision::Exact).await?;
/// println!("{} pending, {} failed", counts.pending, counts.failed);
/// # assert_eq!((counts.pending, counts.failed), (1, 0));
///
/// // Failed deliveries by their cause; then replay all of one cause.
/// for error in operations.counts_by_error(Precision::Exact).await?.items {
///     println!("{} x {}: {}", error.count, error.handler, error.error);
///     let same = Filter::new().status(DeliveryStatus::Failed).fingerprint(&error.fingerprint);
///     operations.replay_all(&same).await?;
/// }
///
/// // One by one.
/// let failed = Filter::new().status(DeliveryStatus::Failed).handler("charge-card");
/// let page = operations.list(&failed, Paging::newest(50)).await?;
/// for item in page.items {
///     if let Change::Conflict(now) = operations.discard(item.record_id, "charge-card").await? {
///         println!("{} is {now} meanwhile", item.record_id);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Operations<'a, Db: Database> {
    pub(super) pool: &'a Pool<Db>,
    names: &'a TableNames,
    pub(super) partitions: u16,
    /// Calls the dispatcher of this process, if there can be one.
    signals: Option<&'a WakeSignals>,
}

impl<'a, Db: Database> Operations<'a, Db> {
    pub(crate) fn new(
        pool: &'a Pool<Db>,
        names: &'a TableNames,
        partitions: u16,
        signals: Option<&'a WakeSignals>,
    ) -> Self {
        Self {
            pool,
            names,
            partitions,
            signals,
        }
    }

    pub(super) async fn connection(
        &self,
        operation: Operation,
    ) -> Result<sqlx::pool::PoolConnection<Db>> {
        self.pool.acquire().await.during(operation)
    }

    /// The statements on this connection.
    pub(super) fn operator<'c>(&self, connection: &'c mut Db::Connection) -> Operator<'c, Db>
    where
        'a: 'c,
    {
        Operator::new(connection, self.names)
    }

    /// Calls the dispatcher of this process, if there can be one.
    pub(super) fn tell(&self, signal: Signal) {
        if let Some(signals) = self.signals {
            signals.raise(signal);
        }
    }
}

impl<Db: Database> Clone for Operations<'_, Db> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Db: Database> Copy for Operations<'_, Db> {}

impl<Db: Database> fmt::Debug for Operations<'_, Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations")
            .field("database", &Db::NAME)
            .field("tables", &format_args!("{}", self.names))
            .finish()
    }
}
