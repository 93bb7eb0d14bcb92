//! [`Operations::restore`]: puts an exported record back.

use std::collections::HashSet;

use super::{Delivery, DeliveryStatus, Inspected, Operations, RecordStatus};
use crate::{
    outbox::error::{DbContext as _, Error, Operation, Result},
    record::{LONGEST_NAME, Partition, may_be_name},
    runtime::signals::Signal,
    store::{Database, Table},
};

/// A record that cannot be restored. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// A record with this id exists.
    #[error("record {record_id} exists already; a record is restored only after it was deleted")]
    Exists {
        /// The id.
        record_id: i64,
    },
    /// Another record has its dedup key.
    #[error(
        "another record has the dedup key of record {record_id}, so its event was published again; remove the dedup key to restore it all the same"
    )]
    DedupKeyExists {
        /// The id of the record that cannot be restored.
        record_id: i64,
    },
    /// Another delivery has the id of one of its deliveries.
    #[error(
        "another delivery has the id of the delivery of record {record_id} for handler `{handler}`; remove the id, and it becomes the last of its lane"
    )]
    DeliveryExists {
        /// The id of the record that cannot be restored.
        record_id: i64,
        /// The handler of the delivery.
        handler: String,
    },
    /// A delivery blocks its lane, and a dispatcher owns the lane. The dispatcher would not notice it, and
    /// run later records of the lane.
    #[error(
        "record {record_id} blocks a lane, and a dispatcher owns that lane; stop the dispatchers, or restore the record with `unblocked`"
    )]
    Owned {
        /// The id of the record that cannot be restored.
        record_id: i64,
    },
    /// No record can be in this state.
    #[error("record {record_id} cannot be restored: {reason}")]
    Impossible {
        /// The id of the record.
        record_id: i64,
        /// What is wrong.
        reason: String,
    },
}

/// The highest id that every JSON parser reads exactly.
const HIGHEST_ID: i64 = 1 << 53;

impl Inspected {
    /// Checks that a record can be in this state.
    fn check(&self) -> Result<(), RestoreError> {
        let reason = self.fault().or_else(|| self.fault_of_deliveries());
        let record_id = self.record.id;
        reason.map_or(Ok(()), |reason| {
            Err(RestoreError::Impossible { record_id, reason })
        })
    }

    /// Why the record itself is impossible.
    fn fault(&self) -> Option<String> {
        use RecordStatus::{Completed, Discarded, Pending, Scheduled, Split, Unhandled};
        let (record, status) = (&self.record, self.status);
        if !(1..=HIGHEST_ID).contains(&record.id) {
            return Some("its id is not from 1 to 2^53".to_owned());
        }
        if !may_be_name(&record.event) {
            return Some("its event has a name that no event can have".to_owned());
        }
        let dedup_key = self.dedup_key.as_deref().unwrap_or_default();
        for (what, text) in [("key", &*record.key), ("dedup key", dedup_key)] {
            if text.len() > LONGEST_NAME || text.contains('\0') {
                return Some(format!(
                    "its {what} has more than 255 bytes or a NUL character"
                ));
            }
        }
        if record.payload.contains('\0') {
            return Some("its payload has a NUL character".to_owned());
        }
        let open = self.deliveries.iter().any(|one| is_open(one.status));
        match status {
            Pending | Scheduled | Unhandled if !self.deliveries.is_empty() => {
                Some(format!("it is {status} and has deliveries"))
            }
            Scheduled if self.due_at.is_none() => {
                Some("it is scheduled and has no due time".to_owned())
            }
            Split if !open => Some("it is split and has no unfinished delivery".to_owned()),
            Completed | Discarded if open => {
                Some(format!("it is {status} and has an unfinished delivery"))
            }
            Completed | Discarded if self.completed_at.is_none() => {
                Some(format!("it is {status} and has no `completed_at`"))
            }
            Pending | Scheduled | Unhandled | Split | Completed | Discarded => None,
        }
    }

    /// Why one of the deliveries or failures is impossible.
    fn fault_of_deliveries(&self) -> Option<String> {
        let mut handlers = HashSet::new();
        for delivery in &self.deliveries {
            let handler = &delivery.handler;
            if !handlers.insert(handler) {
                return Some(format!("it has two deliveries for handler `{handler}`"));
            }
            if let Some(fault) = delivery.fault() {
                return Some(format!("its delivery for handler `{handler}` {fault}"));
            }
        }
        let mut attempts = HashSet::new();
        for failure in &self.failures {
            let (handler, attempt) = (&failure.handler, failure.attempt);
            if !attempts.insert((handler, attempt)) {
                return Some(format!(
                    "it has two failures of attempt {attempt} of handler `{handler}`"
                ));
            }
            let names = [Some(&failure.kind), Some(&failure.fingerprint)];
            if !is_id(handler) || !are_storable(names, Some(&failure.error)) {
                return Some(format!("a failure of handler `{handler}` cannot be stored"));
            }
        }
        None
    }
}

impl Delivery {
    fn fault(&self) -> Option<&'static str> {
        use DeliveryStatus::{Retrying, Waiting};
        let names = [self.kind.as_ref(), self.fingerprint.as_ref()];
        if !is_id(&self.handler) || !are_storable(names, self.error.as_ref()) {
            return Some("cannot be stored");
        }
        if !(0..=HIGHEST_ID).contains(&self.id) {
            return Some("has an id that is not from 1 to 2^53");
        }
        match self.status {
            _ if self.attempt == 0 => Some("has attempt 0; 1 is the first"),
            Waiting if !self.blocking => Some("is waiting and does not block its lane"),
            Retrying if self.due_at.is_none() => Some("is retrying and has no due time"),
            status if !is_open(status) && self.blocking => Some("is finished and blocks its lane"),
            _ => None,
        }
    }
}

fn is_open(status: DeliveryStatus) -> bool {
    use DeliveryStatus::{Failed, Retrying, Waiting};
    matches!(status, Waiting | Retrying | Failed)
}

fn is_id(handler: &str) -> bool {
    (1..=LONGEST_NAME).contains(&handler.len()) && !handler.contains('\0')
}

fn are_storable<const N: usize>(names: [Option<&String>; N], text: Option<&String>) -> bool {
    let mut names = names.into_iter().flatten();
    names.all(|name| name.len() <= LONGEST_NAME && !name.contains('\0'))
        && text.is_none_or(|text| !text.contains('\0'))
}

impl<Db: Database> Operations<'_, Db> {
    /// Puts an exported record back: with its ids, its status, its times, and its deliveries with their
    /// states, attempts and failures. [`inspect`](Self::inspect) returns the record in the form that this
    /// takes, and serde writes and reads it as JSON.
    ///
    /// A dispatcher of this process reads a restored record at once. Those of other processes read it
    /// within two minutes, because it is older than records that they have read.
    ///
    /// A delivery that blocks its lane is restored only while no dispatcher owns the lane. Otherwise use
    /// [`Inspected::unblocked`].
    ///
    /// ```
    /// # use outbox::{Outbox, operations::Inspected};
    /// async fn export(outbox: &Outbox<sqlx::Sqlite>, id: i64) -> Result<String, Box<dyn std::error::Error>> {
    ///     let record = outbox.operations().inspect(id).await?.ok_or("no such record")?;
    ///     Ok(serde_json::to_string(&record)?)
    /// }
    ///
    /// async fn import(outbox: &Outbox<sqlx::Sqlite>, json: &str) -> Result<(), Box<dyn std::error::Error>> {
    ///     let record: Inspected = serde_json::from_str(json)?;
    ///     outbox.operations().restore(&record).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`RestoreError`] if the record or a part of it exists, if a dispatcher owns a lane that it blocks, or
    /// if no record can be in its state. Nothing was changed then. When the database fails.
    pub async fn restore(&self, record: &Inspected) -> Result<()> {
        // A transaction that is dropped before its commit is rolled back.
        let tx = self.pool.begin_with(Db::BEGIN).await;
        let mut tx = tx.during(Operation::Restore)?;
        self.check_restore(&mut tx, record).await?;
        let mut operator = self.operator(&mut tx);
        let partition = operator.partition_of(&record.record.key).await;
        let partition = partition.during(Operation::Restore)?;
        let partition = partition.ok_or_else(|| Error::NoPartitions {
            tables: self.names.to_string(),
        })?;
        if record.deliveries.iter().any(|delivery| delivery.blocking) {
            let freed = operator.free_partition(partition).await;
            if !freed.during(Operation::Restore)? {
                let record_id = record.record.id;
                return Err(RestoreError::Owned { record_id }.into());
            }
        }
        self.write(&mut tx, record, partition).await?;
        tx.commit().await.during(Operation::Restore)?;
        self.wake_dispatcher(Signal::Restored);
        tracing::info!(record_id = record.record.id, "record restored");
        Ok(())
    }

    /// Whether [`restore`](Self::restore) would accept this record now, except for the owners of lanes.
    ///
    /// # Errors
    /// Those of [`restore`](Self::restore).
    pub async fn may_restore(&self, record: &Inspected) -> Result<()> {
        let connection = self.pool.acquire().await;
        let mut connection = connection.during(Operation::Restore)?;
        self.check_restore(&mut connection, record).await
    }

    /// Checks the record and the rows that must not exist.
    async fn check_restore(
        &self,
        connection: &mut Db::Connection,
        record: &Inspected,
    ) -> Result<()> {
        record.check()?;
        let record_id = record.record.id;
        let mut operator = self.operator(connection);
        let status = operator.record_status(record_id).await;
        if status.during(Operation::Restore)?.is_some() {
            return Err(RestoreError::Exists { record_id }.into());
        }
        if let Some(key) = &record.dedup_key {
            let exists = operator.has_dedup_key(key).await;
            if exists.during(Operation::Restore)? {
                return Err(RestoreError::DedupKeyExists { record_id }.into());
            }
        }
        for delivery in record.deliveries.iter().filter(|one| one.id > 0) {
            let exists = operator.has_delivery(delivery.id).await;
            if exists.during(Operation::Restore)? {
                let handler = delivery.handler.clone();
                return Err(RestoreError::DeliveryExists { record_id, handler }.into());
            }
        }
        Ok(())
    }

    /// Writes the rows.
    async fn write(
        &self,
        connection: &mut Db::Connection,
        record: &Inspected,
        partition: Partition,
    ) -> Result<()> {
        let record_id = record.record.id;
        let ids = record.deliveries.iter().map(|delivery| delivery.id);
        let last = ids.max().unwrap_or(0);
        for (table, id) in [(Table::Record, record_id), (Table::Delivery, last)] {
            let raised = Db::raise_next_id(connection, self.names, table, id).await;
            raised.during(Operation::Restore)?;
        }
        let mut operator = self.operator(connection);
        match operator.restore(record, partition).await {
            // Another process wrote the record since the check.
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                Err(Error::from(RestoreError::Exists { record_id }))
            }
            result => result.during(Operation::Restore),
        }
    }
}
