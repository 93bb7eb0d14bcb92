//! Reading records, deliveries, lanes and instances.

use super::{
    BlockedLane, Cursor, Filter, Inspected, Instance, Listed, Operations, Page, Paging, Status,
    filter::LARGEST_PAGE,
};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
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
        self.operator(&mut connection)
            .count(filter.status, query)
            .await
            .during(operation)
    }

    /// Everything that is stored of one record, with its payload.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn inspect(&self, record_id: i64) -> Result<Option<Inspected>> {
        let operation = Operation::Inspect;
        let mut connection = self.connection(operation).await?;
        self.operator(&mut connection)
            .inspect(record_id)
            .await
            .during(operation)
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
        self.operator(&mut connection)
            .blocked_lanes(status, query)
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
        self.operator(&mut connection)
            .instances()
            .await
            .during(operation)
    }

    /// The first `limit` of what the filter selects.
    pub(super) async fn select(
        &self,
        filter: &Filter,
        paging: Paging,
        limit: u32,
    ) -> Result<Vec<Listed>> {
        if filter.matches_nothing() {
            return Ok(Vec::new());
        }
        let operation = Operation::List;
        let query = filter.query(paging, i64::from(limit));
        let mut connection = self.connection(operation).await?;
        self.operator(&mut connection)
            .list(filter.status, query)
            .await
            .during(operation)
    }
}

impl Filter {
    /// The filter as the statements take it.
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

impl Listed {
    /// The place of this item in the list.
    pub(super) fn cursor(&self) -> Cursor {
        Cursor(
            self.delivery
                .as_ref()
                .map_or(self.record_id, |delivery| delivery.id),
        )
    }
}
