//! Reading records, deliveries, lanes and instances.

use jiff::Timestamp;

use super::{
    BlockedLane, Cursor, DeliveryStatus, Filter, Inspected, Instance, Listed, Operations, Order,
    Page, Paging, Status, operations::ask,
};
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    store::{Database, ListQuery, as_micros},
};

impl<Db: Database> Operations<'_, Db> {
    /// Lists records or deliveries, page by page.
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
        // One item more than the limit shows whether there is a next page.
        let one_more = Paging {
            limit: paging.limit + 1,
            ..paging
        };
        let mut items = self.select(filter, one_more).await?;
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more);
        let next = next.map(|item| item.cursor(paging.order));
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
        let query = ListQuery {
            limit: i64::MAX,
            ..filter.query(Paging::oldest(1))
        };
        ask!(self, Operation::Count, count(filter.status, query))
    }

    /// One record with its payload, its deliveries and its failures.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn inspect(&self, record_id: i64) -> Result<Option<Inspected>> {
        ask!(self, Operation::Inspect, inspect(record_id))
    }

    /// Lanes in which a failed or retrying delivery blocks the records after it. Lanes with the most
    /// waiting records come first. At most `limit` lanes, clamped to 1 to 1,000.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn blocked_lanes(&self, limit: u32) -> Result<Vec<BlockedLane>> {
        self.blocked_lanes_of(&Filter::new(), limit).await
    }

    /// [`blocked_lanes`](Self::blocked_lanes) whose head the filter selects. A filter with the status
    /// of a record selects none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn blocked_lanes_of(&self, filter: &Filter, limit: u32) -> Result<Vec<BlockedLane>> {
        let status = match filter.status {
            None => None,
            Some(Status::Delivery(status)) => Some(status),
            Some(Status::Record(_)) => return Ok(Vec::new()),
        };
        if filter.matches_nothing() {
            return Ok(Vec::new());
        }
        let query = filter.query(Paging::oldest(limit));
        ask!(self, Operation::List, blocked_lanes(status, query))
    }

    /// The processes that run a dispatcher, the oldest first. A killed process is listed until another
    /// process takes its partitions.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn instances(&self) -> Result<Vec<Instance>> {
        ask!(self, Operation::List, instances())
    }

    /// A page of the items that the filter selects.
    pub(super) async fn select(&self, filter: &Filter, paging: Paging) -> Result<Vec<Listed>> {
        if filter.matches_nothing() {
            return Ok(Vec::new());
        }
        let status = match (paging.order, filter.status) {
            (Order::Failed, None) => Some(DeliveryStatus::Failed.into()),
            (Order::Failed, Some(Status::Record(_))) => return Ok(Vec::new()),
            (Order::Published | Order::Failed, status) => status,
        };
        let query = filter.query(paging);
        ask!(self, Operation::List, list(status, query))
    }
}

impl Filter {
    /// The filter as the statements take it.
    fn query(&self, paging: Paging) -> ListQuery<'_> {
        ListQuery {
            event: self.event.as_deref(),
            handler: self.handler.as_deref(),
            key: self.key.as_deref(),
            fingerprint: self.fingerprint.as_deref(),
            older_than: self.older_than.map(as_micros),
            failed_since: self.failed_since.map(as_micros),
            order: paging.order,
            newest_first: paging.newest_first,
            after: paging.after,
            limit: paging.limit.into(),
        }
    }
}

impl Listed {
    /// The position of this item in a list with this order.
    pub(super) fn cursor(&self, order: Order) -> Cursor {
        let delivery = self.delivery.as_ref();
        let failed_at = delivery
            .filter(|_| order == Order::Failed)
            .and_then(|delivery| delivery.failed_at);
        Cursor {
            id: delivery.map_or(self.record_id, |delivery| delivery.id),
            failed_at: failed_at.map(Timestamp::as_microsecond),
        }
    }
}
