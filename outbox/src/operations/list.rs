//! Reading records, deliveries, lanes and instances.

use super::{
    BlockedLane, Cursor, Filter, Inspected, Instance, Listed, Operations, Page, Paging, Status,
    operations::ask,
};
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    store::{Database, ListQuery, micros},
};

impl<Db: Database> Operations<'_, Db> {
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
        let one_more = Paging {
            limit: paging.limit + 1,
            ..paging
        };
        let mut items = self.select(filter, one_more).await?;
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(Listed::cursor);
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

    /// Everything that is stored of one record, with its payload.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn inspect(&self, record_id: i64) -> Result<Option<Inspected>> {
        ask!(self, Operation::Inspect, inspect(record_id))
    }

    /// Lanes in which a failed or retrying delivery blocks the records after it; those with the most
    /// waiting records first. At most `limit`, from 1 to 1,000.
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

    /// The processes that run a dispatcher, the oldest first. One that was killed is listed until
    /// another has taken over.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn instances(&self) -> Result<Vec<Instance>> {
        ask!(self, Operation::List, instances())
    }

    /// A page of what the filter selects.
    pub(super) async fn select(&self, filter: &Filter, paging: Paging) -> Result<Vec<Listed>> {
        if filter.matches_nothing() {
            return Ok(Vec::new());
        }
        let query = filter.query(paging);
        ask!(self, Operation::List, list(filter.status, query))
    }
}

impl Filter {
    /// The filter as the statements take it.
    fn query(&self, paging: Paging) -> ListQuery<'_> {
        let start = if paging.newest_first { i64::MAX } else { 0 };
        ListQuery {
            event: self.event.as_deref(),
            handler: self.handler.as_deref(),
            key: self.key.as_deref(),
            fingerprint: self.fingerprint.as_deref(),
            older_than: self.older_than.map(micros),
            newest_first: paging.newest_first,
            after: paging.after.map_or(start, |cursor| cursor.0),
            limit: paging.limit.into(),
        }
    }
}

impl Listed {
    /// The place of this item in the list.
    pub(super) fn cursor(&self) -> Cursor {
        let delivery = self.delivery.as_ref();
        Cursor(delivery.map_or(self.record_id, |delivery| delivery.id))
    }
}
