//! [`Bulk`]: replays or discards many records or deliveries, one short transaction at a time.

use super::{
    DeliveryStatus, Filter, Operations, Order, Paging, RecordStatus, Status,
    step::{Batch, Step, Verb},
};
use crate::{outbox::Result, store::Database};

/// How many records or deliveries one transaction changes by default.
const BATCH: u32 = 500;

impl<'a, Db: Database> Operations<'a, Db> {
    /// [`replay_all`](Self::replay_all) for a caller that shows progress or may stop early.
    ///
    /// ```
    /// # use outbox::{Outbox, Result, operations::Filter};
    /// async fn replay(outbox: &Outbox<sqlx::Sqlite>) -> Result<()> {
    ///     let mut bulk = outbox.operations().replaying(&Filter::new().handler("charge-card"));
    ///     while let Some(changed) = bulk.next().await? {
    ///         println!("{changed} more");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn replaying(&self, filter: &Filter) -> Bulk<'a, Db> {
        Bulk::new(*self, Verb::Replay, filter)
    }

    /// [`discard_all`](Self::discard_all) for a caller that shows progress or may stop early.
    pub fn discarding(&self, filter: &Filter) -> Bulk<'a, Db> {
        Bulk::new(*self, Verb::Discard, filter)
    }
}

/// Replays or discards many records or deliveries. Each call of [`next`](Self::next) is one transaction.
/// If this is dropped, also during a call, each batch is changed either completely or not at all.
#[derive(Debug)]
#[must_use = "nothing is changed until `next` is called"]
pub struct Bulk<'a, Db: Database> {
    operations: Operations<'a, Db>,
    verb: Verb,
    filter: Filter,
    /// Starts after the last item that was read, so that no item is read twice.
    paging: Paging,
    /// The highest id that the filter selected at the first call of `next`. Higher ids are not
    /// changed.
    until: Option<i64>,
}

impl<'a, Db: Database> Bulk<'a, Db> {
    fn new(operations: Operations<'a, Db>, verb: Verb, filter: &Filter) -> Self {
        let mut filter = filter.clone();
        // Only failed deliveries wait for an operator.
        filter.status.get_or_insert(DeliveryStatus::Failed.into());
        Self {
            operations,
            verb,
            filter,
            paging: Paging::oldest(BATCH),
            until: None,
        }
    }

    /// How many items one transaction changes, from 1 to 1,000. Default: 500. Call it before the first
    /// [`next`](Self::next).
    pub fn batch_size(mut self, size: u32) -> Self {
        self.paging = Paging::oldest(size);
        self
    }

    /// Changes the next batch and returns how many items it changed. Returns `None` after the last item
    /// that existed at the first call.
    ///
    /// # Errors
    /// When the database fails. Batches that were changed before stay changed.
    pub async fn next(&mut self) -> Result<Option<u64>> {
        if !self.verb.applies_to(self.filter.status) {
            return Ok(None);
        }
        let (operations, filter) = (&self.operations, &self.filter);
        let until = match self.until {
            Some(until) => until,
            None => {
                let newest = operations.select(filter, Paging::newest(1)).await?;
                newest
                    .first()
                    .map_or(0, |item| item.cursor(Order::Published).id)
            }
        };
        self.until = Some(until);
        let items = operations.select(filter, self.paging).await?;
        let mut batch = Batch::default();
        for item in items
            .iter()
            .filter(|item| item.cursor(Order::Published).id <= until)
        {
            self.paging = self.paging.after(item.cursor(Order::Published));
            batch.records.push(item.record_id);
            let delivery = item.delivery.as_ref();
            batch
                .deliveries
                .extend(delivery.map(|delivery| delivery.id));
        }
        if batch.records.is_empty() {
            return Ok(None);
        }
        let step = if batch.deliveries.is_empty() {
            Step::Records(self.verb, &batch.records)
        } else {
            Step::Deliveries(self.verb, &batch)
        };
        operations.apply(step).await.map(Some)
    }

    pub(super) async fn finish(mut self) -> Result<u64> {
        let mut changed = 0;
        while let Some(more) = self.next().await? {
            changed += more;
        }
        tracing::info!(changed, "{}", self.verb.past());
        Ok(changed)
    }
}

impl Verb {
    fn applies_to(self, status: Option<Status>) -> bool {
        use DeliveryStatus::{Failed, Retrying, Waiting};
        use RecordStatus::{Pending, Scheduled, Unhandled};
        match status {
            Some(Status::Delivery(Failed | Retrying) | Status::Record(Scheduled)) => true,
            Some(Status::Delivery(Waiting) | Status::Record(Pending | Unhandled)) => {
                self == Self::Discard
            }
            _ => false,
        }
    }
}
