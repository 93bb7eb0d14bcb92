//! Publishing without a Rust type: a name and JSON text.

use crate::{
    outbox::{Outbox, Schedule},
    record::{RawEvent, Record},
    store::Database,
};

impl<Db: Database> Outbox<Db> {
    /// [`schedule`](Self::schedule) for an event that has no Rust type in this program: a bridge from a
    /// broker, or an importer. It has the same options and limits, and a [`version`](Schedule::version).
    /// Handlers get it like an event that was published with its type.
    ///
    /// `json` is the text of one JSON value, and is stored as it is. Text that is not JSON is refused
    /// before any SQL. For a `serde_json::Value`, give `value.to_string()`. Without a
    /// [`key`](Schedule::key), the event gets a key of its own. `validate` of the event's type runs only
    /// before a handler, because this program does not know the type.
    ///
    /// ```
    /// # use outbox::{Outbox, Scheduled};
    /// async fn import(outbox: &Outbox<sqlx::Sqlite>, tx: &mut sqlx::SqliteConnection) -> outbox::Result<()> {
    ///     let message = r#"{"order_id": 7, "total_cents": 1250}"#;
    ///     let sent = outbox
    ///         .schedule_raw("order.created", message)
    ///         .key(7)
    ///         .version(2)
    ///         .dedup_key("orders/0/184467") // topic, partition and offset of the message
    ///         .send(tx)
    ///         .await?;
    ///     if sent == Scheduled::Duplicate {
    ///         println!("was imported before");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn schedule_raw(
        &self,
        event: impl Into<String>,
        json: impl Into<String>,
    ) -> Schedule<'_, Db, RawEvent> {
        let event = event.into();
        let record = Record::of_raw(&event, json.into(), &*self.inner.clock);
        Schedule::new(self, event.into(), record)
    }
}

impl<Db: Database> Schedule<'_, Db, RawEvent> {
    /// The version of the payload. Default: 1.
    pub fn version(mut self, version: u32) -> Self {
        if let Ok(record) = &mut self.record {
            record.version = version;
        }
        self
    }
}
