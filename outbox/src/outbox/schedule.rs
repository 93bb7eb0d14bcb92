//! [`Schedule`]: one event with its options, on its way into the caller's transaction.

use std::{borrow::Cow, fmt, marker::PhantomData, time::Duration};

use jiff::Timestamp;
use tracing::{Instrument as _, Span};

use crate::{
    outbox::{DbContext as _, Operation, Outbox, Result},
    record::{EventError, OutboxEvent, Partition, Record},
    runtime::signals::Signal,
    store::{Database, Due, NewRecord},
    telemetry::trace::{self, PublishOutcome},
};

/// An event that is about to be published; see [`Outbox::schedule`] and [`Outbox::schedule_raw`].
#[must_use = "nothing is written until `send`"]
pub struct Schedule<'a, Db: Database, E> {
    outbox: &'a Outbox<Db>,
    /// The name of the event.
    name: Cow<'static, str>,
    /// The event as a record, or why it cannot be published.
    pub(super) record: Result<Record, EventError>,
    event: PhantomData<fn(E)>,
    key: Option<String>,
    due: Due,
    dedup_key: Option<String>,
    headers: Vec<(String, String)>,
    max_retries: Option<u32>,
}

/// The result of [`Schedule::send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a duplicate was not written"]
pub enum Scheduled {
    /// The event was written.
    Published {
        /// The id of its record.
        record_id: i64,
    },
    /// A record with the same dedup key exists. Nothing was written, and the transaction is still
    /// usable.
    Duplicate,
}

impl<Db: Database> Outbox<Db> {
    /// Like [`publish`](Self::publish), with options: key, due time, dedup key, headers, retries.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use outbox::{Database, Outbox, OutboxEvent, Scheduled};
    /// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
    /// # #[outbox_event(name = "order.created", key = order_id)]
    /// # struct OrderCreated { order_id: i64 }
    /// async fn remind(outbox: &Outbox<sqlx::Sqlite>, tx: &mut sqlx::SqliteConnection) -> outbox::Result<()> {
    ///     let event = OrderCreated { order_id: 7 };
    ///     let sent = outbox
    ///         .schedule(&event)
    ///         .delay(Duration::from_secs(3600))
    ///         .dedup_key("reminder/7")
    ///         .header("tenant", "acme")
    ///         .send(tx)
    ///         .await?;
    ///     if sent == Scheduled::Duplicate {
    ///         println!("was sent before");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn schedule<E: OutboxEvent>(&self, event: &E) -> Schedule<'_, Db, E> {
        Schedule::new(self, E::NAME.into(), Record::of(event, &*self.inner.clock))
    }
}

impl<'a, Db: Database, E> Schedule<'a, Db, E> {
    pub(super) fn new(
        outbox: &'a Outbox<Db>,
        name: Cow<'static, str>,
        record: Result<Record, EventError>,
    ) -> Self {
        Self {
            outbox,
            name,
            record,
            event: PhantomData,
            key: None,
            due: Due::Now,
            dedup_key: None,
            headers: Vec::new(),
            max_retries: None,
        }
    }

    /// Uses this key instead of the key of the event.
    pub fn key(mut self, key: impl fmt::Display) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// Handlers get the event after this delay at the earliest, by the clock of the database. The
    /// last call of `delay` and [`at`](Self::at) counts.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.due = Due::In(delay);
        self
    }

    /// Handlers get the event at this time at the earliest, by the clock of the database.
    pub fn at(mut self, time: Timestamp) -> Self {
        self.due = Due::At(time);
        self
    }

    /// Writes the event once, however often it is sent: while a record with this dedup key is kept
    /// ([`Retention`](crate::config::Retention)), `send` returns [`Scheduled::Duplicate`].
    pub fn dedup_key(mut self, key: impl fmt::Display) -> Self {
        self.dedup_key = Some(key.to_string());
        self
    }

    /// Adds a header that handlers can read. The last value of a name counts.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Stores `max_retries` with the record. It takes precedence over the policies of the handlers.
    pub fn max_retries(mut self, n: u32) -> Self {
        self.max_retries = Some(n);
        self
    }

    /// Writes the event in the caller's transaction.
    ///
    /// # Errors
    /// If the event is not valid or too large, before any SQL; or if the database fails.
    pub async fn send(self, connection: &mut Db::Connection) -> Result<Scheduled> {
        let span = trace::publish(&self.name, 1);
        let write = self.write(connection, &span);
        let result = write.instrument(span.clone()).await;
        let outcome = match &result {
            Ok(Scheduled::Published { record_id }) => {
                span.record("record_id", record_id);
                PublishOutcome::Published
            }
            Ok(Scheduled::Duplicate) => PublishOutcome::Duplicate,
            Err(_) => PublishOutcome::Failed,
        };
        trace::published(&span, outcome);
        result
    }

    /// [`send`](Self::send) inside its span.
    async fn write(self, connection: &mut Db::Connection, span: &Span) -> Result<Scheduled> {
        let (shared, due) = (&self.outbox.inner, self.due);
        let record = self.checked(&trace::trace_headers())?;
        let partitions = shared.partitions(connection, Operation::Publish).await?;
        let record = record(partitions);
        if shared.config.observability.log_keys {
            span.record("key", &*record.record.key);
        }
        let inserted = Db::insert(connection, &shared.sql, &record).await;
        let inserted = inserted.during(Operation::Publish)?;
        #[cfg(feature = "testing")]
        shared.stamp(connection, &[record]).await?;
        // The caller commits later. The event loop's `on_signals` picks this signal up and polls
        // until it finds the record.
        match due {
            Due::Now => shared.signals.raise(Signal::Published),
            Due::In(_) | Due::At(_) => shared.signals.raise(Signal::PublishedForLater),
        }
        Ok(match inserted {
            Some(record_id) => Scheduled::Published { record_id },
            None => Scheduled::Duplicate,
        })
    }

    /// Checks the event. Returns the row to insert, for a number of partitions into which its key is hashed:
    /// that number may have to be read, and a refused event must leave the transaction usable. The row
    /// belongs to this trace, unless its headers name another.
    pub(super) fn checked(
        self,
        trace: &[(String, String)],
    ) -> Result<impl FnOnce(u16) -> NewRecord + use<Db, E>> {
        let shared = &self.outbox.inner;
        let (limits, dedup_key) = (&shared.limits, self.dedup_key);
        let mut record = self.record?;
        if let Some(key) = self.key {
            record.key = key;
        }
        record.headers.extend(self.headers);
        limits.add_trace(&mut record, trace);
        record.max_retries = self.max_retries;
        record.pinned_max_retries = shared.pinned_max_retries;
        limits.check(
            &self.name,
            &record,
            dedup_key.as_deref().unwrap_or_default(),
        )?;
        let due = shared.due(self.due);
        Ok(move |partitions| NewRecord {
            partition: Partition::of(&record.key, partitions),
            record,
            due,
            dedup_key,
        })
    }
}

impl<Db: Database, E> fmt::Debug for Schedule<'_, Db, E> {
    /// Leaves out the key and the headers, which are the user's data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("event", &self.name)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}
