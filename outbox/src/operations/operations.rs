//! [`Operations`]: the interface for people on call.

use std::fmt;

use sqlx::Pool;

use crate::{
    runtime::signals::{Signal, WakeSignals},
    store::{Database, Operator, TableNames},
};

/// The interface for people on call: count, list, replay, discard, pause. See
/// [`Outbox::operations`](crate::outbox::Outbox::operations), and [`Tables`](super::Tables) for programs
/// without an outbox of their own.
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
///         println!("{} is already {now}", item.record_id);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Operations<'a, Db: Database> {
    pub(crate) pool: &'a Pool<Db>,
    pub(crate) names: &'a TableNames,
    /// The signals of the dispatcher of this process. `None` in a program without an outbox.
    pub(crate) signals: Option<&'a WakeSignals>,
}

/// Runs one function of the [`Operator`] on a connection of the pool. Its error names the operation.
macro_rules! ask {
    ($operations:expr, $operation:expr, $function:ident($($argument:expr),*)) => {{
        let mut connection = $operations.pool.acquire().await.during($operation)?;
        let mut operator = $operations.operator(&mut connection);
        operator.$function($($argument),*).await.during($operation)
    }};
}
pub(super) use ask;

impl<Db: Database> Operations<'_, Db> {
    /// The statements on this connection.
    pub(super) fn operator<'c>(&'c self, connection: &'c mut Db::Connection) -> Operator<'c, Db> {
        Operator::new(connection, self.names)
    }

    /// Raises a signal for the dispatcher of this process, if it can have one.
    pub(super) fn wake_dispatcher(&self, signal: Signal) {
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
