//! Publishing: from an event to a record in the caller's transaction.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use tracing::{Instrument as _, Span};

use crate::{
    outbox::{Outbox, Result, error::While as _},
    record::{OutboxEvent, Record, partition::partition_of},
    runtime::signals::Signal,
    store::{Database, Due, NewRecord},
    telemetry::trace::{self, Sent},
};

impl<Db: Database> Outbox<Db> {
    /// Writes the event into the caller's transaction: it is delivered if and only if that commits.
    ///
    /// Takes the connection that the business rows are written with, so that there is no way to
    /// write outside of it by accident: `outbox.publish(&mut tx, &event)`.
    ///
    /// # Errors
    /// When the event is not valid or too large, before any SQL; or when the database fails.
    pub async fn publish<E: OutboxEvent>(
        &self,
        connection: &mut Db::Connection,
        event: &E,
    ) -> Result<()> {
        self.schedule(event).send(connection).await.map(|_| ())
    }

    /// Writes all events in one statement, in their order.
    ///
    /// # Errors
    /// When one of them is not valid or too large, before any SQL; or when the database fails.
    pub async fn publish_all<E: OutboxEvent>(
        &self,
        connection: &mut Db::Connection,
        events: &[E],
    ) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let span = trace::publish(E::NAME, events.len());
        let written = self.write_all(connection, events);
        let written = written.instrument(span.clone()).await;
        let outcome = written.as_ref().map_or(Sent::Failed, |()| Sent::Published);
        trace::published(&span, outcome);
        written
    }

    /// [`publish_all`](Self::publish_all) inside its span.
    async fn write_all<E: OutboxEvent>(
        &self,
        connection: &mut Db::Connection,
        events: &[E],
    ) -> Result<()> {
        let trace = trace::carried();
        let records = events
            .iter()
            .map(|event| self.schedule(event).into_record(&trace))
            .collect::<Result<Vec<NewRecord>>>()?;
        let written = Db::insert_all(connection, &self.inner.sql, &records).await;
        #[cfg(feature = "testing")]
        let written = match written {
            Ok(()) => self.inner.stamp(connection, &records).await,
            failed => failed,
        };
        self.inner.signals.raise(Signal::Published);
        written.doing("publishing events")
    }

    /// Like [`publish`](Self::publish), with more to say: a key, a time, a dedup key, headers.
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
    ///         println!("has been sent before");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "nothing is written until `send`"]
    pub fn schedule<'a, E: OutboxEvent>(&'a self, event: &'a E) -> Schedule<'a, Db, E> {
        Schedule {
            outbox: self,
            event,
            key: None,
            due: Due::Now,
            dedup_key: None,
            headers: Vec::new(),
            max_retries: None,
        }
    }
}

/// An event that is about to be published; see [`Outbox::schedule`].
#[must_use = "nothing is written until `send`"]
pub struct Schedule<'a, Db: Database, E> {
    outbox: &'a Outbox<Db>,
    event: &'a E,
    key: Option<String>,
    due: Due,
    dedup_key: Option<String>,
    headers: Vec<(String, String)>,
    max_retries: Option<u32>,
}

/// What became of an event that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a duplicate was not written"]
pub enum Scheduled {
    /// It was written.
    Published {
        /// The id of its record.
        record_id: i64,
    },
    /// One with the same dedup key is there already; nothing was written, and the transaction
    /// goes on.
    Duplicate,
}

impl<Db: Database, E: OutboxEvent> Schedule<'_, Db, E> {
    /// Another key than the event's own.
    pub fn key(mut self, key: impl fmt::Display) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// Not handled before this long after now, by the database's clock. The last of
    /// `delay` and [`at`](Self::at) holds.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.due = Due::In(delay);
        self
    }

    /// Not handled before this time, by the database's clock.
    pub fn at(mut self, time: Timestamp) -> Self {
        self.due = Due::At(time);
        self
    }

    /// Written once, however often it is sent, for as long as the record is kept
    /// ([`Retention`](crate::config::Retention)): a second one with the same key is a
    /// [`Scheduled::Duplicate`].
    pub fn dedup_key(mut self, key: impl fmt::Display) -> Self {
        self.dedup_key = Some(key.to_string());
        self
    }

    /// Something for the handlers, beside the event. The last value of a name holds.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Stored with the record; wins over the policy of whatever handles it.
    pub fn max_retries(mut self, n: u32) -> Self {
        self.max_retries = Some(n);
        self
    }

    /// Writes it into the caller's transaction.
    ///
    /// # Errors
    /// When the event is not valid or something is too long, before any SQL; or when the
    /// database fails.
    pub async fn send(self, connection: &mut Db::Connection) -> Result<Scheduled> {
        let span = trace::publish(E::NAME, 1);
        let sent = self.write(connection, &span);
        let sent = sent.instrument(span.clone()).await;
        let outcome = match &sent {
            Ok(Scheduled::Published { record_id }) => {
                span.record("record_id", record_id);
                Sent::Published
            }
            Ok(Scheduled::Duplicate) => Sent::Duplicate,
            Err(_) => Sent::Failed,
        };
        trace::published(&span, outcome);
        sent
    }

    /// [`send`](Self::send) inside its span.
    async fn write(self, connection: &mut Db::Connection, span: &Span) -> Result<Scheduled> {
        let (inner, due) = (&self.outbox.inner, self.due);
        let record = self.into_record(&trace::carried())?;
        if inner.config.observability.log_keys {
            span.record("key", &*record.record.key);
        }
        let written = Db::insert(connection, &inner.sql, &record)
            .await
            .doing("publishing an event")?;
        #[cfg(feature = "testing")]
        inner
            .stamp(connection, std::slice::from_ref(&record))
            .await
            .doing("publishing an event")?;
        match due {
            Due::Now => inner.signals.raise(Signal::Published),
            Due::In(_) | Due::At(_) => inner.signals.raise(Signal::PublishedForLater),
        }
        Ok(match written {
            Some(record_id) => Scheduled::Published { record_id },
            None => Scheduled::Duplicate,
        })
    }

    /// In this trace, unless the headers name another.
    fn into_record(self, trace: &[(String, String)]) -> Result<NewRecord> {
        let inner = &self.outbox.inner;
        let mut record = Record::of(self.event, &*inner.clock)?;
        if let Some(key) = self.key {
            record.key = key;
        }
        record.headers.extend(self.headers);
        inner.limits.add_trace(&mut record.headers, trace);
        record.max_retries = self.max_retries.or(inner.pinned_max_retries);
        inner
            .limits
            .check(E::NAME, &record, self.dedup_key.as_deref())?;
        Ok(NewRecord {
            partition: partition_of(&record.key, inner.partitions),
            record,
            due: inner.due(self.due),
            dedup_key: self.dedup_key,
        })
    }
}

impl<Db: Database, E: OutboxEvent> fmt::Debug for Schedule<'_, Db, E> {
    /// Without the key and the headers, which are the user's data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("event", &E::NAME)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}
