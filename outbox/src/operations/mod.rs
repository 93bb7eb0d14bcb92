//! What a person on call looks at and changes; see [`Operations`].

mod breakdown;
mod bulk;
mod change;
mod estimate;
mod filter;
mod forget;
pub(crate) mod health;
mod overview;
mod prune;
mod status;
mod step;
mod tables;
mod view;

use std::{collections::BTreeMap, fmt, time::Duration};

use sqlx::Pool;

pub use crate::record::{DeliveryStatus, RecordStatus};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    runtime::signals::WakeSignals,
    store::{Database, ListQuery, StatusCount, TableNames, micros},
};
pub use breakdown::Breakdown;
pub use bulk::{Bulk, Pruning};
pub use estimate::EstimatedCounts;
use filter::LARGEST_PAGE;
pub use filter::{Cursor, Filter, Paging};
pub use health::{DatabaseHealth, DispatcherHealth, Health, HealthCheck};
pub use overview::Overview;
pub use status::{Change, Status};
pub use tables::Tables;
pub use view::{
    BlockedLane, Counts, Delivery, ErrorCount, EventCounts, Failure, Inspected, Instance, Listed,
    Page,
};

/// What a person on call looks at and changes; see [`Outbox::operations`](crate::outbox::Outbox::operations),
/// and [`Tables`] for programs without an outbox of their own.
///
/// ```
/// # use outbox::{Outbox, OutboxEvent, Registry};
/// use outbox::operations::{Change, DeliveryStatus, Filter, Paging};
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
/// let counts = operations.counts().await?;
/// println!("{} pending, {} failed", counts.pending, counts.failed);
/// # assert_eq!((counts.pending, counts.failed), (1, 0));
///
/// // What failed, grouped by its cause; then all of one cause once more.
/// for error in operations.counts_by_error().await? {
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
    pool: &'a Pool<Db>,
    names: &'a TableNames,
    partitions: u16,
    /// Of the dispatcher of this process, if there can be one.
    wake: Option<&'a WakeSignals>,
}

impl<'a, Db: Database> Operations<'a, Db> {
    pub(crate) fn new(
        pool: &'a Pool<Db>,
        names: &'a TableNames,
        partitions: u16,
        wake: Option<&'a WakeSignals>,
    ) -> Self {
        Self {
            pool,
            names,
            partitions,
            wake,
        }
    }

    /// How much there is, by what it waits for.
    ///
    /// Counts what is kept of completed records too, which takes around a second per million; see
    /// [`estimated_counts`](Self::estimated_counts).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn counts(&self) -> Result<Counts> {
        let operation = Operation::Count;
        let mut connection = self.connection(operation).await?;
        let counted = Db::counts(&mut connection, self.names())
            .await
            .during(operation)?;
        let mut counts = Counts::default();
        for one in counted {
            counts.add(&one);
        }
        Ok(counts)
    }

    /// How much of each event is not finished, in the order of their names: records that are
    /// pending, scheduled or unhandled, and deliveries that are waiting, retrying or failed. An
    /// event of which everything is finished is not there.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn counts_by_event(&self) -> Result<Vec<EventCounts>> {
        let operation = Operation::Count;
        let mut connection = self.connection(operation).await?;
        let counted = Db::counts_by_event(&mut connection, self.names())
            .await
            .during(operation)?;
        let mut events: BTreeMap<String, Counts> = BTreeMap::new();
        for mut one in counted {
            let event = one.event.take().unwrap_or_default();
            events.entry(event).or_default().add(&one);
        }
        Ok(events.into_iter().map(EventCounts::of).collect())
    }

    /// Failed deliveries by what went wrong, the most frequent first; the first 1,000.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn counts_by_error(&self) -> Result<Vec<ErrorCount>> {
        let operation = Operation::Count;
        let mut connection = self.connection(operation).await?;
        Db::counts_by_error(&mut connection, self.names(), i64::from(LARGEST_PAGE))
            .await
            .during(operation)
    }

    /// How long ago the oldest pending record was published, by the database's clock: how far
    /// behind the handlers are. Cheap enough to be asked for every few seconds.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn oldest_pending_age(&self) -> Result<Option<Duration>> {
        let operation = Operation::Overview;
        let mut connection = self.connection(operation).await?;
        let age = Db::oldest_pending(&mut connection, self.names(), self.partitions)
            .await
            .during(operation)?;
        Ok(age.map(|(micros, _)| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
    }

    /// Records or deliveries, page by page.
    ///
    /// ```
    /// # use outbox::{Outbox, Result, operations::{Filter, Paging, RecordStatus}};
    /// async fn print_pending(outbox: &Outbox<sqlx::Sqlite>) -> Result<()> {
    ///     let pending = Filter::new().status(RecordStatus::Pending);
    ///     let mut paging = Paging::oldest(100);
    ///     loop {
    ///         let page = outbox.operations().list(&pending, paging).await?;
    ///         for item in &page.items {
    ///             println!("{} {} {}", item.record_id, item.event, item.created_at);
    ///         }
    ///         let Some(next) = page.next else { return Ok(()) };
    ///         paging = paging.after(next);
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list(&self, filter: &Filter, paging: Paging) -> Result<Page> {
        let limit = usize::try_from(paging.limit).unwrap_or(usize::MAX);
        // One more than asked for tells whether there is a next page.
        let mut items = self.select(filter, paging, paging.limit + 1).await?;
        let next = (items.len() > limit)
            .then(|| items.get(limit - 1).map(|item| item.cursor()))
            .flatten();
        items.truncate(limit);
        Ok(Page { items, next })
    }

    /// How many records or deliveries the filter selects.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        if filter.matches_nothing() {
            return Ok(0);
        }
        let operation = Operation::Count;
        let query = filter.query(Paging::oldest(LARGEST_PAGE), i64::MAX);
        let mut connection = self.connection(operation).await?;
        Db::count(&mut connection, self.names(), filter.status, query)
            .await
            .during(operation)
    }

    /// Everything that is stored of one record, its payload among it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn inspect(&self, record_id: i64) -> Result<Option<Inspected>> {
        let operation = Operation::Inspect;
        let mut connection = self.connection(operation).await?;
        Db::inspect(&mut connection, self.names(), record_id)
            .await
            .during(operation)
    }

    /// Lanes in which a delivery that failed, or is to be tried again later, holds up the records
    /// after it; those with the most behind first. At most `limit`, of 1 to 1,000.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn blocked_lanes(&self, limit: u32) -> Result<Vec<BlockedLane>> {
        self.blocked_lanes_of(&Filter::new(), limit).await
    }

    /// The same, of lanes whose head the filter selects. With the status of a record there is none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn blocked_lanes_of(&self, filter: &Filter, limit: u32) -> Result<Vec<BlockedLane>> {
        let operation = Operation::List;
        let status = match filter.status {
            None => None,
            Some(Status::Delivery(status)) => Some(status),
            Some(Status::Record(_)) => return Ok(Vec::new()),
        };
        if filter.matches_nothing() {
            return Ok(Vec::new());
        }
        let limit = i64::from(limit.clamp(1, LARGEST_PAGE));
        let query = filter.query(Paging::oldest(1), limit);
        let mut connection = self.connection(operation).await?;
        Db::blocked_lanes(&mut connection, self.names(), status, query)
            .await
            .during(operation)
    }

    /// The processes that run a dispatcher, the oldest first. One that was killed is listed until
    /// another has taken over.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn instances(&self) -> Result<Vec<Instance>> {
        let operation = Operation::List;
        let mut connection = self.connection(operation).await?;
        Db::instances(&mut connection, self.names())
            .await
            .during(operation)
    }

    /// The ids of the handlers that are paused, in order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn paused(&self) -> Result<Vec<String>> {
        let operation = Operation::List;
        let mut connection = self.connection(operation).await?;
        let mut handlers = Db::paused_handlers(&mut connection, self.names())
            .await
            .during(operation)?;
        handlers.sort_unstable();
        Ok(handlers)
    }

    /// The first `limit` of what the filter selects.
    async fn select(&self, filter: &Filter, paging: Paging, limit: u32) -> Result<Vec<Listed>> {
        if filter.matches_nothing() {
            return Ok(Vec::new());
        }
        let operation = Operation::List;
        let query = filter.query(paging, i64::from(limit));
        let mut connection = self.connection(operation).await?;
        let (connection, names) = (&mut *connection, self.names());
        let found = match filter.status {
            None => Db::list_records(connection, names, None, query).await,
            Some(Status::Record(status)) => {
                Db::list_records(connection, names, Some(status), query).await
            }
            Some(Status::Delivery(status)) => {
                Db::list_deliveries(connection, names, status, query).await
            }
        };
        found.during(operation)
    }

    async fn connection(&self, operation: Operation) -> Result<sqlx::pool::PoolConnection<Db>> {
        self.pool.acquire().await.during(operation)
    }

    fn names(&self) -> &'a TableNames {
        self.names
    }

    /// Tells the dispatcher of this process, if there can be one.
    fn tell(&self, what: fn(&WakeSignals)) {
        if let Some(wake) = self.wake {
            what(wake);
        }
    }
}

impl Filter {
    /// As the statements take it.
    fn query(&self, paging: Paging, limit: i64) -> ListQuery<'_> {
        let start = if paging.newest_first { i64::MAX } else { 0 };
        ListQuery {
            event: self.event.as_deref(),
            handler: self.handler.as_deref(),
            key: self.key.as_deref(),
            fingerprint: self.fingerprint.as_deref(),
            older_than: self.older_than.map(micros),
            newest_first: paging.newest_first,
            after: paging.after.map_or(start, |cursor| cursor.0),
            limit,
        }
    }
}

impl Counts {
    fn add(&mut self, one: &StatusCount) {
        let place = match one.status {
            Status::Record(RecordStatus::Pending) => &mut self.pending,
            Status::Record(RecordStatus::Scheduled) => &mut self.scheduled,
            Status::Record(RecordStatus::Unhandled) => &mut self.unhandled,
            Status::Record(RecordStatus::Completed) => &mut self.completed,
            Status::Record(RecordStatus::Discarded) => &mut self.discarded,
            Status::Delivery(DeliveryStatus::Waiting) => &mut self.waiting,
            Status::Delivery(DeliveryStatus::Retrying) => &mut self.retrying,
            Status::Delivery(DeliveryStatus::Failed) => &mut self.failed,
            // Split records are counted as their deliveries, finished deliveries as their record.
            Status::Record(RecordStatus::Split)
            | Status::Delivery(DeliveryStatus::Completed | DeliveryStatus::Discarded) => return,
        };
        *place += one.count;
    }
}

impl Listed {
    /// Its place in the list.
    fn cursor(&self) -> Cursor {
        Cursor(
            self.delivery
                .as_ref()
                .map_or(self.record_id, |delivery| delivery.id),
        )
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
